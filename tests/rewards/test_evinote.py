"""EviNote-RAG's reward as released and in the ablations; equation 5 is in tests/golden/test_reward_rows.py."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from sleuth.errors import ConfigError, JudgeError
from sleuth.judges.base import Judge
from sleuth.judges.lexical import LexicalJudge
from sleuth.protocols.search_tags import SearchTags
from sleuth.rewards.base import Known
from sleuth.rewards.evinote import CODE_CLAIM, EviNoteReward
from sleuth.rollouts.transcript import read_transcript
from sleuth.types import Question, Score, Trajectory

PROTOCOL = SearchTags(instruction="{question}", note="summary")
QUESTION = Question("q", "Who won?", ("Rocky", "Rocky (film)"))
MARKED = "* Rocky won.\n- The year is unclear."


@dataclass(frozen=True)
class FixedJudge(Judge):
    """Gives set verdicts by claim, 0.5 otherwise."""

    verdicts: tuple[tuple[str, float | None], ...] = ()

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        return [next((v for text, v in self.verdicts if text in claim), 0.5) for _, claim in pairs]


@dataclass(frozen=True)
class Garbled(Judge):
    """Answers whatever it was made with."""

    answer: Any

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


BROKEN = Garbled(JudgeError("the judge is away"))


def episode(note: str | None, answer: str | None, seed: int = 0, question: Question = QUESTION) -> Trajectory:
    last = "" if note is None else f"<summary>{note}</summary>"
    last += "" if answer is None else f"<answer>{answer}</answer>"
    rows = [
        ("model", "<think>?</think><search>who won</search>"),
        ("environment", "<information>* Doc 1 - x</information>"),
    ]
    return replace(read_transcript(PROTOCOL, question, [*rows, ("model", last)]), seed=seed)


def score(reward: EviNoteReward, trajectory: Trajectory, entailment: float | None = None) -> Score:
    (result,) = reward.given(Known(entailment=entailment)).score([trajectory])
    return result


@pytest.mark.parametrize(
    ("note", "marked"),
    [
        ("* key\n- unsure", True),
        ("- 1976 is a guess\n  *  key", True),
        ("* key\n– perhaps", True),
        ("* **Key** fact\n- **Year** unclear", True),  # emphasis of what a mark leads
        ("* ** fact\n- x", False),
        ("* * *\n- x", False),  # Markdown's rule
        ("* Bob Dylan wrote it - singer", False),  # a dash in prose
        ("**Rocky** — won Best Picture", False),  # Markdown
        ("**Rocky**\n- a film", False),
        ("*Rocky*\n- a film", False),
        ("* key\n-5 degrees", False),
        ("* key\n--- \n", False),
        ("* from 1990-1995, then 1996 - 1999", False),
        ("2*3\n- x", False),
        ("* -", False),
        ("", False),
    ],
)
def test_both_marks_must_lead_something(note: str, marked: bool):
    assert EviNoteReward().is_marked(episode(note, "x")) is marked


def test_list_items_copied_from_a_result_are_no_marks():
    passage = "Facts: * Rocky  won Best Picture. * It ran in 1976. - Network lost."
    rows = [("model", "<search>who won</search>"), ("environment", f"<information>{passage}</information>")]

    def marked(note: str) -> bool:
        last = ("model", f"<summary>{note}</summary><answer>Rocky</answer>")
        return EviNoteReward().is_marked(read_transcript(PROTOCOL, QUESTION, [*rows, last]))

    copied = "* Rocky won Best Picture.\n* It ran in 1976.\n- Network lost."
    assert not marked(copied)
    assert not marked(f"{copied}\n* Rocky is a film.")  # one mark of its own is not both
    assert marked(f"{copied}\n* Rocky is a film.\n- Is 1976 the year?")
    assert marked("* Rocky won, it says.\n- It ran in 1976.")  # quotations with marks of their own


@pytest.mark.parametrize("eqr", ["gated", "none"])
def test_entailment_is_measured_for_every_note_and_paid_where_equation_5_pays(eqr: Any):
    reward = EviNoteReward(judge=FixedJudge(), eqr=eqr)
    for note, answer, paid in (
        (MARKED, "Rocky", 1),
        (MARKED, "Network", 0.1),
        ("n", "Network", 0),
        ("n", None, 0),
    ):
        got = score(reward, episode(note, answer))
        assert got.parts["entailment"] == 0.5
        assert got.total == pytest.approx(paid + (0.5 if paid and eqr == "gated" else 0))
    assert score(reward, episode(None, "Rocky")).parts["entailment"] == 0.0  # no note supports nothing
    assert "entailment" not in score(EviNoteReward(eqr="none"), episode("n", "Rocky")).parts


def test_the_best_gold_counts_and_only_the_last_note_is_judged():
    judge = FixedJudge((("Rocky (film)", 0.7), ("Rocky is", 0.2)))
    trajectory = episode("Rocky won.", "Rocky")
    assert score(EviNoteReward(judge=judge), trajectory).total == pytest.approx(1.7)
    assert score(EviNoteReward(judge=judge, golds="first"), trajectory).total == pytest.approx(1.2)
    assert EviNoteReward().pairs(trajectory)[0] == ("Rocky won.", "Rocky is the answer to 'Who won?'")


def test_a_note_that_repeats_the_question_earns_nothing_from_a_judge_of_words():
    question = Question("q", "What is the internet country code of Tunisia?", (".tn",))
    reward = EviNoteReward(judge=LexicalJudge())
    repeated = "* The prefix is TS.\n- Still missing: the internet country code of Tunisia."
    found = "* Internet country code: .tn.\n- All of it is certain."
    early, late = (score(reward, episode(note, "Tunisia", question=question)) for note in (repeated, found))
    assert (early.parts["entailment"], early.total) == (0.0, 0.1)
    assert (late.parts["entailment"], late.total) == (1.0, 1.1)


def test_the_claim_is_filled_in_one_pass():
    question = Question("q", "What is {gold}?", ("{question}",))
    assert EviNoteReward().pairs(episode("n", "a", question=question)) == [
        ("n", "{question} is the answer to 'What is {gold}?'")
    ]


def test_a_judge_that_fails_spoils_only_what_needed_it():
    reward = EviNoteReward(judge=BROKEN)
    right, wrong = reward.score([episode("Rocky won.", "Rocky"), episode("Rocky won.", "Network")])
    assert right.invalid == "the judge is away"
    assert (wrong.invalid, wrong.total) == ("", 0.0)


def test_no_judge_at_all_is_invalid_with_the_setting_named():
    assert "reward.judge" in score(EviNoteReward(), episode("Rocky won.", "Rocky")).invalid


def test_a_blank_note_and_a_question_without_golds_are_not_judged():
    reward = EviNoteReward(judge=BROKEN)
    assert score(reward, episode("  ", "Rocky")).total == 1.0
    assert score(reward, episode("n", "x", question=Question("q", "?", (), answerable=False))).total == 0.0


CODE = EviNoteReward(
    judge=FixedJudge(),
    eqr="always",
    gate="note",
    marks="code",
    claim=CODE_CLAIM,
    golds="first",
    blank_above=512,
)


@pytest.mark.parametrize(
    ("note", "answer", "total"),
    [
        ("Rocky", "Rocky", 1.5),
        ("*key*", "Network", 0.6),
        ("#a# *b*", "Network", 0.6),
        ("*key", "Network", 0.5),
        ("- unsure", "Network", 0.5),
        (None, "Rocky", 0.5),
        (None, None, 0.5),
    ],
)
def test_the_released_code_adds_entailment_whatever_the_format(note: Any, answer: Any, total: float):
    assert score(CODE, episode(note, answer)).total == pytest.approx(total)


def test_the_released_code_blanks_long_notes_and_claims_the_first_gold():
    assert CODE.pairs(episode("x" * 513, "a")) == [("", 'Rocky is the answer to the question:"Who won?"')]
    assert CODE.pairs(episode("x" * 512, "a"))[0][0] == "x" * 512
    assert CODE.pairs(episode(None, "a"))[0][0] == "None"


FORCE = EviNoteReward(gate="note", marks="none", eqr="none")


@pytest.mark.parametrize(
    ("reward", "note", "answer", "total"),
    [
        (EviNoteReward(gate="none", marks="none", eqr="none"), None, "Rocky", 1.0),  # NS, NE
        (EviNoteReward(gate="none", marks="none", eqr="none"), "n", "Network", 0.0),
        (FORCE, None, "Rocky", 0.0),
        (FORCE, "n", "Rocky", 1.0),
        (FORCE, MARKED, "Network", 0.0),
        (replace(FORCE, stochastic=1.0), "n", "Network", 0.1),
        (replace(FORCE, stochastic=1.0), None, "Network", 0.0),
        (replace(FORCE, stochastic=1.0), "n", "Rocky", 1.0),
        (replace(FORCE, eqr="gated"), "n", "Rocky", 1.8),
        (replace(FORCE, eqr="gated"), "n", "Network", 0.8),
        (replace(FORCE, eqr="gated"), None, "Rocky", 0.0),
        (EviNoteReward(eqr="none"), "n", "Rocky", 1.0),  # SEN
        (EviNoteReward(eqr="none"), MARKED, "Network", 0.1),
        (EviNoteReward(eqr="none"), "n", "Network", 0.0),
    ],
)
def test_ablations(reward: EviNoteReward, note: Any, answer: Any, total: float):
    assert score(reward, episode(note, answer), 0.8).total == pytest.approx(total)


def test_the_stochastic_reward_depends_on_the_seed_and_pays_a_third():
    reward = replace(FORCE, stochastic=1 / 3)
    draws = [score(reward, episode("n", "Network", seed)).total for seed in range(600)]
    assert draws == [score(reward, episode("n", "Network", seed)).total for seed in range(600)]
    assert set(draws) == {0.0, 0.1}
    # 600 draws at 1/3: mean 200, standard deviation 11.5; five of those either way
    assert 142 < draws.count(0.1) < 258


def test_a_known_entailment_must_be_a_probability():
    with pytest.raises(ConfigError, match=r"1\.5"):
        score(EviNoteReward(), episode("n", "Rocky"), 1.5)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ([0.5], "1 verdicts on 2 questions"),
        ([0.5] * 3, "3 verdicts on 2 questions"),
        ([7.0, 0.5], "cannot be one: 7.0"),
        ([-0.1, 0.5], "cannot be one"),
        (["entailment", 0.5], "cannot be one"),
        ([True, 0.5], "cannot be one"),
        ([None, 0.5], "no verdict on the last note"),
        ([float("nan"), 0.5], "cannot be one: nan"),
        (TimeoutError("no reply in 60 s"), "no reply in 60 s"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_a_garbled_verdict_is_invalid_never_zero(answer: Any, reason: str):
    right = score(EviNoteReward(judge=Garbled(answer)), episode("Rocky won.", "Rocky"))
    assert reason in right.invalid
    assert not right.parts
