"""Error classes: every class by a small episode, the order where two apply, and none left over."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.evaluation.comparing.error_classes import CLASSES, NO_NOTES, draws_on, error_class, notes_of
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
CLOSED = Question(
    "q",
    "Were both operas first given in London?",
    ("no",),
    gold_ids=("g1", "o1"),
    hops=(Hop("a", "g1", "1955"), Hop("b", "o1", "London")),
    dataset="squad",
)


def episode(
    answer: str | None = "Benjamin Britten",
    note: str = "",
    shown: tuple[Passage, ...] = (GOLD, OTHER),
    question: Question = ASKED,
    tag: str = "summary",
) -> Trajectory:
    """Search, result, note and answer; `answer` None is a last turn that nobody can read."""
    body = f"<{tag}>{note}</{tag}>"
    turn = Segment("policy", f"{body}<answer>{answer}</answer>")
    return Trajectory(
        question,
        (
            Segment("prompt", question.text),
            Segment("policy", "<search>it</search>"),
            Segment("world", "results", hits=tuple(Hit(passage, 1.0) for passage in shown)),
            turn,
        ),
        actions=(
            Action("search", "it", 1),
            Action(*(("invalid", "?") if answer is None else ("answer", answer)), 3),
        ),
        fields=(Field(tag, note, 3, 9, 9 + len(note)),) if note else (),
        ending="steps" if answer is None else "answered",
    )


def classed(trajectory: Trajectory) -> str:
    return error_class(trajectory, rules_for(trajectory.question.dataset))


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        # As in the paper's figure 7: the kind of work without its composer; another work; the wrong composer.
        ("The Midsummer Marriage is an opera in three acts.", "incomplete"),
        ("Peter Grimes is by Benjamin Britten.", "irrelevant"),
        ("The Midsummer Marriage is by Benjamin Britten.", "inaccurate"),
        ("Peter Grimes is by Benjamin Britten. The Midsummer Marriage is an opera.", "incomplete"),
        ("The Midsummer Marriage and Peter Grimes: one is by Benjamin Britten.", "incomplete"),
        ("The Midsummer Marriage was first given in 1962.", "inaccurate"),
        ("The Midsummer Marriage is by Michael Tippett.", "answer"),
        # The right clue beside a number that nothing says is inaccurate all the same.
        ("By Michael Tippett, in 1962.", "inaccurate"),
        # Numbers of the passages and the question, short ones, and other ways to write them.
        ("Doc 2: an opera by him, 1,955.", "irrelevant"),
        ("Nothing found.", "irrelevant"),
        ("It is an opera in three parts.", "irrelevant"),
        ("An opera in three acts.", "incomplete"),
    ],
)
def test_notes(note: str, expected: str) -> None:
    assert classed(episode(note=note)) == expected


def test_an_answer_of_ones_own_making_is_inaccurate_only_if_the_note_states_it() -> None:
    assert classed(episode("Gustav Holst", "The Midsummer Marriage is by Gustav Holst.")) == "inaccurate"
    assert classed(episode("Gustav Holst", "The Midsummer Marriage is an opera.")) == "incomplete"
    # What the question itself says is not made up.
    assert classed(episode("The Midsummer Marriage", "It is The Midsummer Marriage.")) == "incomplete"


def test_without_notes_the_passages_are_the_evidence() -> None:
    assert classed(episode()) == "answer"
    partly = replace(ASKED, gold_ids=("g1", "g2"))
    assert classed(episode(question=partly)) == "incomplete"
    assert classed(episode(question=partly, shown=(GOLD, SECOND))) == "answer"
    unsaid = replace(ASKED, answers=("Tippett, Sir Michael",))
    assert classed(episode(question=unsaid)) == "incomplete"
    # Gold ids of another corpus: the answer's words decide.
    foreign = replace(ASKED, gold_ids=("elsewhere",))
    assert classed(episode(question=foreign)) == "answer"


@pytest.mark.parametrize("tag", NO_NOTES)
def test_thoughts_and_actions_are_no_notes(tag: str) -> None:
    trajectory = episode(note="Gustav Holst, 1962", answer="Gustav Holst", tag=tag)
    assert notes_of(trajectory) == ""
    assert classed(trajectory) == "answer"


def test_search_failure() -> None:
    assert classed(episode(shown=(OTHER,))) == "search"
    assert classed(episode(shown=())) == "search"
    assert classed(episode(shown=(OTHER,), note="It is by Michael Tippett.")) == "search"
    # A passage that is not gold but holds the answer will do; so will a gold one that does not.
    assert classed(episode(shown=(SECOND,), note="Michael Tippett.")) == "answer"
    assert classed(episode(shown=(GOLD,), question=replace(ASKED, answers=("Sir Michael",)))) == "incomplete"


def test_what_is_needed_may_be_unknown() -> None:
    bare = replace(CLOSED, gold_ids=(), hops=())
    assert classed(episode("yes", question=bare)) == "answer"
    assert classed(episode("yes", "Peter Grimes.", question=bare)) == "answer"
    assert classed(episode("yes", "In 1962.", question=bare)) == "inaccurate"
    assert classed(episode("yes", question=bare, shown=())) == "search"


def test_yes_or_no_needs_every_step() -> None:
    assert classed(episode("yes", "Peter Grimes: London.", question=CLOSED)) == "incomplete"
    assert classed(episode("yes", "Given in 1955, and in London.", question=CLOSED)) == "answer"
    assert classed(episode("yes", "Nothing.", question=CLOSED)) == "irrelevant"
    without_steps = replace(CLOSED, hops=())
    assert classed(episode("yes", "Nothing.", question=without_steps)) == "irrelevant"
    assert classed(episode("yes", "Peter Grimes.", question=without_steps)) == "answer"


def test_right_refused_failed_and_unread() -> None:
    unanswerable = replace(ASKED, answers=(), answerable=False, gold_ids=(), dataset="default")
    refused = {"actions": (Action("refuse", "", 3),), "ending": "refused"}
    assert classed(episode("Michael Tippett")) == "right"
    assert classed(replace(episode("Michael Tippett"), malformed="text outside the tags")) == "right"
    assert classed(replace(episode(), **refused)) == "wrong_refusal"
    assert classed(replace(episode(question=unanswerable), **refused)) == "right"
    assert classed(episode(question=unanswerable)) == "missed_refusal"
    assert classed(replace(episode("Michael Tippett"), fault="index gone", ending="fault")) == "failed"
    assert classed(episode(None)) == "format"
    assert classed(episode(None, question=unanswerable)) == "format"


def test_no_answer_after_a_turn_that_could_be_read_is_no_format_failure() -> None:
    searching = replace(
        episode(), actions=(Action("search", "it", 1), Action("search", "more", 3)), ending="steps"
    )
    assert classed(searching) == "answer"
    assert classed(replace(searching, segments=episode(shown=(OTHER,)).segments)) == "search"
    recovered = replace(searching, actions=(Action("invalid", "?", 1), Action("search", "more", 3)))
    assert classed(recovered) == "answer"
    silent = replace(searching, actions=(Action("search", "it", 1),))
    assert classed(silent) == "format"
    no_room = Trajectory(ASKED, (Segment("prompt", "too long"),), ending="context")
    assert classed(no_room) == "search"


@pytest.mark.parametrize(
    ("notes", "passage", "expected"),
    [
        ("see Peter Grimes", OTHER, True),
        ("opera by Benjamin Britten", OTHER, True),
        ("opera by Britten", OTHER, False),
        ("a tiny text", Passage("t", "T", "Tiny text."), True),
        ("nothing of it", Passage("t", "", ""), False),
        ("", OTHER, False),
    ],
)
def test_what_notes_draw_on(notes: str, passage: Passage, expected: bool) -> None:
    assert draws_on(notes, passage) is expected


texts = st.sampled_from(
    ["", "yes", "no", "Michael Tippett", "1955", "Peter Grimes", "An opera in three acts by", "x"]
)


@settings(deadline=None, max_examples=300)
@given(
    answer=st.none() | texts,
    note=texts,
    golds=st.lists(texts, max_size=2),
    shown=st.lists(st.sampled_from([GOLD, OTHER, SECOND]), max_size=3),
    gold_ids=st.lists(st.sampled_from(["g1", "g2", "zz"]), max_size=2),
    ending=st.sampled_from(["answered", "refused", "steps", "context", "fault"]),
    dataset=st.sampled_from(["squad", "squad2", "hotpotqa", "musique", "default"]),
)
def test_every_episode_has_one_class(
    answer: str | None,
    note: str,
    golds: list[str],
    shown: list[Passage],
    gold_ids: list[str],
    ending: str,
    dataset: str,
) -> None:
    question = replace(
        ASKED, answers=tuple(golds), answerable=bool(golds), gold_ids=tuple(gold_ids), dataset=dataset
    )
    trajectory = replace(episode(answer, note, tuple(shown), question), ending=ending)  # type: ignore[arg-type]
    assert classed(trajectory) in CLASSES
