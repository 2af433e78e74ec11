"""Error classes: every class by a small episode, their order, and exactly one class for any episode."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.evaluation.comparing.error_classes import CLASSES, NO_NOTES, error_class, notes_of
from sleuth.metrics.answers import rules_for
from sleuth.types import Action, Field, Hit, Hop, Passage, Question, Segment, Trajectory

# The opera of EviOmni's figure 7: who composed it, and in which year it was first given.
GOLD = Passage(
    "g1", "The Midsummer Marriage", "An opera in three acts by Michael Tippett, first given in 1955."
)
OTHER = Passage("o1", "Peter Grimes", "An opera by Benjamin Britten, first performed in London in 1945.")
SECOND = Passage("g2", "Michael Tippett", "An English composer, born in London in 1905.")
ASKED = Question(
    "q", "Who composed The Midsummer Marriage?", ("Michael Tippett",), gold_ids=("g1",), dataset="squad"
)
HOPS = (Hop("a", "g1", "1955"), Hop("b", "o1", "London"))
NO_STEPS = Question(
    "q", "Were both operas first given in London?", ("no",), gold_ids=("g1", "o1"), dataset="squad"
)
CLOSED = replace(NO_STEPS, hops=HOPS)


def episode(
    answer: str | None = "Benjamin Britten",
    note: str = "",
    shown: tuple[Passage, ...] = (GOLD, OTHER),
    question: Question = ASKED,
    tag: str = "summary",
) -> Trajectory:
    """Search, result, note and answer; `answer` None is an unreadable last turn."""
    turn = Segment("policy", f"<{tag}>{note}</{tag}><answer>{answer}</answer>")
    result = Segment("world", "results", hits=tuple(Hit(passage, 1.0) for passage in shown))
    last = Action("invalid", "?", 3) if answer is None else Action("answer", answer, 3)
    return Trajectory(
        question,
        (Segment("prompt", question.text), Segment("policy", "<search>it</search>"), result, turn),
        actions=(Action("search", "it", 1), last),
        fields=(Field(tag, note, 3, 9, 9 + len(note)),) if note else (),
        ending="steps" if answer is None else "answered",
    )


def classed(trajectory: Trajectory) -> str:
    return error_class(trajectory, rules_for(trajectory.question.dataset))


PARTLY = replace(ASKED, gold_ids=("g1", "g2"))
BARE = replace(CLOSED, gold_ids=(), hops=())
NO_ANSWER = replace(ASKED, answers=(), answerable=False, gold_ids=(), dataset="default")
REFUSED = {"actions": (Action("refuse", "", 3),), "ending": "refused"}
SEARCHING = replace(
    episode(), actions=(Action("search", "it", 1), Action("search", "more", 3)), ending="steps"
)


@pytest.mark.parametrize(
    ("trajectory", "expected"),
    [
        # As in the paper's figure 7: the kind of work without its composer; another work; the wrong composer.
        (episode(note="The Midsummer Marriage is an opera in three acts."), "incomplete"),
        (episode(note="Peter Grimes is by Benjamin Britten."), "irrelevant"),
        (episode(note="The Midsummer Marriage is by Benjamin Britten."), "inaccurate"),
        (episode(note="Peter Grimes is by Benjamin Britten. The Midsummer Marriage: opera."), "incomplete"),
        (episode(note="The Midsummer Marriage and Peter Grimes: one is by Benjamin Britten."), "incomplete"),
        (episode(note="The Midsummer Marriage was first given in 1962."), "inaccurate"),
        (episode(note="The Midsummer Marriage is by Michael Tippett."), "answer"),
        # The right clue with an unsupported number is inaccurate all the same.
        (episode(note="By Michael Tippett, in 1962."), "inaccurate"),
        # Numbers of the passages and the question, short ones, and other ways to write them.
        (episode(note="Doc 2: an opera by him, 1,955."), "irrelevant"),
        (episode(note="Nothing found."), "irrelevant"),
        (episode(note="It is an opera in three parts."), "irrelevant"),
        (episode(note="An opera in three acts."), "incomplete"),
        # A passage of fewer words than a quotation is quoted as a whole.
        (episode(note="A tiny text.", shown=(replace(GOLD, title="T", text="Tiny text."),)), "incomplete"),
        (episode(note="A tiny one.", shown=(replace(GOLD, title="T", text="Tiny text."),)), "irrelevant"),
        # An invented answer is inaccurate only if the note states it, and words of the question are not invented.
        (episode("Gustav Holst", "The Midsummer Marriage is by Gustav Holst."), "inaccurate"),
        (episode("Gustav Holst", "The Midsummer Marriage is an opera."), "incomplete"),
        (episode("The Midsummer Marriage", "It is The Midsummer Marriage."), "incomplete"),
        # Without notes the passages are the evidence; gold ids of another corpus leave it to the answer's words.
        (episode(), "answer"),
        (episode(question=PARTLY), "incomplete"),
        (episode(question=PARTLY, shown=(GOLD, SECOND)), "answer"),
        (episode(question=replace(ASKED, answers=("Tippett, Sir Michael",))), "incomplete"),
        (episode(question=replace(ASKED, gold_ids=("elsewhere",))), "answer"),
        # Search failure: no passage is gold or holds the answer.
        (episode(shown=(OTHER,)), "search"),
        (episode(shown=()), "search"),
        (episode(shown=(OTHER,), note="It is by Michael Tippett."), "search"),
        (episode(shown=(SECOND,), note="Michael Tippett."), "answer"),
        (episode(shown=(GOLD,), question=replace(ASKED, answers=("Sir Michael",))), "incomplete"),
        # Neither gold passages nor a findable answer.
        (episode("yes", question=BARE), "answer"),
        (episode("yes", "Peter Grimes.", question=BARE), "answer"),
        (episode("yes", "In 1962.", question=BARE), "inaccurate"),
        (episode("yes", question=BARE, shown=()), "search"),
        # A yes/no question needs every step.
        (episode("yes", "Peter Grimes: London.", question=CLOSED), "incomplete"),
        (episode("yes", "Given in 1955, and in London.", question=CLOSED), "answer"),
        (episode("yes", "Nothing.", question=CLOSED), "irrelevant"),
        (episode("yes", "Nothing.", question=NO_STEPS), "irrelevant"),
        (episode("yes", "Peter Grimes.", question=NO_STEPS), "answer"),
        # Right, refused, failed and unreadable.
        (episode("Michael Tippett"), "right"),
        (replace(episode("Michael Tippett"), malformed="text outside the tags"), "right"),
        (replace(episode(), **REFUSED), "wrong_refusal"),
        (replace(episode(question=NO_ANSWER), **REFUSED), "right"),
        (episode(question=NO_ANSWER), "missed_refusal"),
        (replace(episode("Michael Tippett"), fault="index gone", ending="fault"), "failed"),
        (episode(None), "format"),
        (episode(None, question=NO_ANSWER), "format"),
        (replace(SEARCHING, actions=(Action("search", "it", 1),)), "format"),
        # A valid last turn without an answer, or no turn at all, is not a format failure.
        (SEARCHING, "answer"),
        (replace(SEARCHING, segments=episode(shown=(OTHER,)).segments), "search"),
        (replace(SEARCHING, actions=(Action("invalid", "?", 1), Action("search", "more", 3))), "answer"),
        (Trajectory(ASKED, (Segment("prompt", "too long"),), ending="context"), "search"),
    ],
)
def test_classes(trajectory: Trajectory, expected: str) -> None:
    assert classed(trajectory) == expected


@pytest.mark.parametrize("tag", NO_NOTES)
def test_thoughts_and_actions_are_no_notes(tag: str) -> None:
    trajectory = episode(note="Gustav Holst, 1962", answer="Gustav Holst", tag=tag)
    assert notes_of(trajectory) == ""
    assert classed(trajectory) == "answer"


texts = st.sampled_from(
    ["", "yes", "no", "Michael Tippett", "1955", "Peter Grimes", "An opera in three acts by", "x"]
)


@settings(max_examples=300)
@given(
    answer=st.none() | texts,
    note=texts,
    golds=st.lists(texts, max_size=2),
    shown=st.lists(st.sampled_from([GOLD, OTHER, SECOND]), max_size=3),
    gold_ids=st.lists(st.sampled_from(["g1", "g2", "zz"]), max_size=2),
    ending=st.sampled_from(["answered", "refused", "steps", "context", "fault"]),
    dataset=st.sampled_from(["squad", "squad2", "hotpotqa", "musique", "default"]),
)
def test_every_episode_has_one_class(answer, note, golds, shown, gold_ids, ending, dataset):
    more = {"answerable": bool(golds), "gold_ids": tuple(gold_ids), "dataset": dataset}
    question = replace(ASKED, answers=tuple(golds), **more)
    trajectory = replace(episode(answer, note, tuple(shown), question), ending=ending)
    assert classed(trajectory) in CLASSES
