"""Every case of EVO-RAG's seven step rewards, worked out by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.encoders.lexical import LexicalEncoder
from sleuth.errors import ConfigError, JudgeError
from sleuth.recipes.evo_rag.curriculum import PARTS, Curriculum
from sleuth.recipes.evo_rag.protocol import EvoRAG
from sleuth.recipes.evo_rag.reward import EvoRAGReward
from sleuth.rollouts.transcript import read_transcript
from sleuth.types import Passage, Question, Score

GOLD = Passage("g", "Checkers speech", "A speech by Richard Nixon.")
OTHER = Passage("o", "Dogs", "About dogs.")
QUESTION = Question("q", "Who?", ("Richard Nixon",), (GOLD, OTHER), ("g",))
UNANSWERABLE = Question("u", "Who?", (), (OTHER,), (), answerable=False)
PROTOCOL = EvoRAG("{question}")
HIT = ("environment", "<information>Doc 1(Title: Checkers speech) A speech by Richard Nixon.</information>")
MISS = ("environment", "<information>Doc 1(Title: Dogs) About dogs.</information>")
BACK = ("model", "<think>no</think><backtrack/>")
REWARD = EvoRAGReward(Curriculum("none", max_steps=20), encoder=LexicalEncoder())
ZERO = dict.fromkeys(PARTS, 0.0)


def search(query: str) -> tuple[str, str]:
    return "model", f"<think>t</think><search>{query}</search>"


def answer(text: str) -> tuple[str, str]:
    return "model", f"<think>t</think><answer>{text}</answer>"


REFUSE = ("model", "<think>t</think><refuse>nothing found</refuse>")


def score(*segments: tuple[str, str], question: Question = QUESTION, reward: EvoRAGReward = REWARD) -> Score:
    (result,) = reward.score([read_transcript(PROTOCOL, question, segments)])
    return result


def raw(*segments: tuple[str, str], question: Question = QUESTION) -> list[dict[str, float]]:
    return [dict(step.parts) for step in score(*segments, question=question).steps]


def test_a_search_that_hits_gold_and_a_right_answer():
    # EM = F1 = 1 for the answer; each step costs 1.
    assert raw(search("checkers"), HIT, answer("richard nixon")) == [
        ZERO | {"retrieval": 1.0, "step": -1.0},
        ZERO | {"answer": 1.0, "step": -1.0},
    ]


def test_a_search_that_hits_nothing():
    assert raw(search("dogs"), MISS, answer("Nixon")) == [
        ZERO | {"retrieval": -1.0, "step": -1.0},
        # EM 0; F1 of {nixon} and {richard, nixon} = 2/3; half of the sum = 1/3.
        ZERO | {"answer": pytest.approx(1 / 3), "step": -1.0},
    ]


def test_a_search_without_a_result_hits_nothing():
    assert raw(search("dogs"))[0]["retrieval"] == -1.0


def test_the_first_query_overlaps_nothing_and_its_duplicate_overlaps_wholly():
    first, second = raw(search("big dogs"), MISS, search("Big dogs!"), MISS)
    assert first["overlap"] == 0.0
    assert second["overlap"] == pytest.approx(-1.0)


def test_overlap_is_the_largest_cosine_with_any_earlier_query():
    # {a1,b} · {b,c} = 1/2; {b,c,d} with {a1,b}: 1/√6, with {b,c}: 2/√6 — the largest counts.
    steps = raw(search("a1 b"), MISS, search("b c"), MISS, search("b c d"), MISS)
    assert [step["overlap"] for step in steps] == pytest.approx([0.0, -0.5, -2 / 6**0.5])


def test_a_dropped_query_still_counts_as_an_earlier_one():
    steps = raw(search("big dogs"), MISS, BACK, search("big dogs"), MISS)
    assert steps[2]["overlap"] == pytest.approx(-1.0)


@pytest.mark.parametrize(("max_steps", "penalty"), [(10, 0.0), (6, -1.0), (7, 0.0), (20, 0.0)])
def test_late_repetitions_are_penalised_from_p_0_3_on(max_steps: int, penalty: float):
    # The second step: p = 0.2, 0.333, 0.2857, 0.1.
    reward = EvoRAGReward(Curriculum("none", max_steps=max_steps), encoder=LexicalEncoder())
    steps = score(search("a1 b"), MISS, search("a1 b"), MISS, reward=reward).steps
    assert [step.parts["retrieval_action"] for step in steps] == [0.0, penalty]


def test_p_of_exactly_0_3_is_late():
    # Step 3 of 10 and step 6 of 20: p = 0.3.
    for max_steps, step in ((10, 3), (20, 6)):
        reward = EvoRAGReward(Curriculum("none", max_steps=max_steps), encoder=LexicalEncoder())
        turns = [turn for _ in range(step) for turn in (search("a1 b"), MISS)]
        steps = score(*turns, reward=reward).steps
        assert [s.parts["retrieval_action"] for s in steps] == [0.0] * (step - 1) + [-1.0]


def test_a_late_search_for_something_new_is_free():
    reward = EvoRAGReward(Curriculum("none", max_steps=2), encoder=LexicalEncoder())
    steps = score(search("a1 b"), MISS, search("c d"), MISS, reward=reward).steps
    assert [s.parts["retrieval_action"] for s in steps] == [0.0, 0.0]
    assert [s.parts["overlap"] for s in steps] == [0.0, 0.0]


def test_a_late_first_search_is_free():
    reward = EvoRAGReward(Curriculum("none", max_steps=1), encoder=LexicalEncoder())
    assert score(search("a1 b"), MISS, reward=reward).steps[0].parts["retrieval_action"] == 0.0


def test_a_backtrack_costs_and_so_does_one_with_nothing_to_drop():
    result = score(BACK, search("dogs"), MISS, BACK, BACK, answer("x"))
    assert [s.action for s in result.steps] == ["invalid", "search", "backtrack", "invalid", "answer"]
    assert [s.parts["backtrack"] for s in result.steps] == [-1.0, 0.0, -1.0, -1.0, 0.0]


def test_other_invalid_actions_cost_a_step_only():
    assert raw(("model", "hello"), ("environment", "Again."), answer("x"))[0] == ZERO | {"step": -1.0}


@pytest.mark.parametrize(
    ("segments", "question", "reward"),
    [
        ([search("dogs"), MISS, REFUSE], QUESTION, 1.0),  # gold not found: the evidence is insufficient
        ([search("checkers"), HIT, REFUSE], QUESTION, -1.0),  # gold found: it was answerable
        ([REFUSE], QUESTION, 1.0),
        ([search("dogs"), MISS, REFUSE], UNANSWERABLE, 1.0),
        ([REFUSE], UNANSWERABLE, 1.0),
        # Dropping good evidence first does not make the refusal honest.
        ([search("checkers"), HIT, BACK, REFUSE], QUESTION, -1.0),
    ],
)
def test_refusals(segments: list[tuple[str, str]], question: Question, reward: float):
    last = score(*segments, question=question).steps[-1]
    assert last.action == "refuse"
    assert last.parts == ZERO | {"refusal": reward, "step": -1.0}


def test_refusing_without_known_gold_is_judged_by_whether_there_is_an_answer():
    assert raw(REFUSE, question=Question("q", "Who?", ("x",)))[0]["refusal"] == -1.0


def test_all_gold_documents_are_needed():
    both = Question("q", "Who?", ("x",), (GOLD, OTHER), ("g", "o"))
    assert raw(search("checkers"), HIT, REFUSE, question=both)[1]["refusal"] == 1.0
    assert raw(search("checkers"), HIT, search("dogs"), MISS, REFUSE, question=both)[2]["refusal"] == -1.0


def test_answering_the_unanswerable_earns_nothing():
    assert raw(answer("x"), question=UNANSWERABLE) == [ZERO | {"step": -1.0}]


def test_the_weighted_return_by_hand():
    # Stage 1 of 20 steps. t = 1: p = 0.05; t = 2: p = 0.1; t = 3: p = 0.15.
    #   w_ret(1) = 2 − 0.05 = 1.95;    w_step(1) = 0.02 + 0.05·0.03 = 0.0215
    #   w_bt(2)  = 0.3 + 0.1·0.2 = 0.32; w_step(2) = 0.023
    #   w_ans(3) = 0.05 + 0.15·0.05 = 0.0575; w_step(3) = 0.0245
    reward = EvoRAGReward(encoder=LexicalEncoder())
    result = score(search("checkers"), HIT, BACK, answer("Richard Nixon"), reward=reward)
    assert result.parts == pytest.approx(
        ZERO | {"retrieval": 1.95, "backtrack": -0.32, "answer": 0.0575, "step": -0.069}
    )
    assert result.total == pytest.approx(1.95 - 0.32 + 0.0575 - 0.069)
    returns = list(accumulate(step.total for step in result.steps))
    assert returns == pytest.approx([1.9285, 1.5855, 1.6185])


def test_single_rewards_and_combinations():
    everything = score(search("a1 b"), MISS, search("a1 b"), HIT, BACK, answer("Nixon"))
    for parts in (("backtrack",), ("backtrack", "answer"), ("retrieval", "overlap")):
        reward = EvoRAGReward(REWARD.curriculum, parts, LexicalEncoder())
        result = score(search("a1 b"), MISS, search("a1 b"), HIT, BACK, answer("Nixon"), reward=reward)
        assert result.total == pytest.approx(sum(everything.parts[part] for part in parts))
        assert all(str(result.parts[part]) == "0.0" for part in PARTS if part not in parts)
        assert [s.parts for s in result.steps] == [s.parts for s in everything.steps]


def test_settings_that_cannot_be():
    with pytest.raises(ConfigError, match=r"parts\[0\] must be one of .*backtrack"):
        EvoRAGReward(parts=("backtracks",))
    with pytest.raises(ConfigError, match="parts must be tuple of length >= 1"):
        EvoRAGReward(parts=())
    with pytest.raises(ConfigError, match="hotpotqa"):
        EvoRAGReward(rule="hotpotq")
    with pytest.raises(ConfigError, match="yes or no"):
        EvoRAGReward(judge="gpt")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Verdict:
    """A judge with one opinion, or none."""

    verdict: bool | None

    def ask(self, prompts: Sequence[str]) -> list[bool | None]:
        return [self.verdict] * len(prompts)


@pytest.mark.parametrize(("enough", "reward"), [(True, -1.0), (False, 1.0)])
def test_a_judge_decides_whether_the_evidence_is_enough(enough: bool, reward: float):
    judged = EvoRAGReward(REWARD.curriculum, encoder=LexicalEncoder(), judge=Verdict(enough))
    assert score(search("checkers"), HIT, REFUSE, reward=judged).steps[1].parts["refusal"] == reward


def test_a_verdict_that_cannot_be_had_is_invalid_and_costs_no_other_sample():
    class Gone:
        def ask(self, prompts: Sequence[str]) -> list[bool | None]:
            raise JudgeError("the endpoint is silent")

    for judge, reason in ((Verdict(None), "no verdict"), (Gone(), "silent")):
        reward = EvoRAGReward(REWARD.curriculum, encoder=LexicalEncoder(), judge=judge)
        transcripts = [read_transcript(PROTOCOL, QUESTION, [turn]) for turn in (REFUSE, answer("x"))]
        refused, answered = reward.score(transcripts)
        assert reason in refused.invalid
        assert not answered.invalid


def test_the_judge_is_asked_about_what_was_found():
    asked: list[str] = []

    class Curious:
        def ask(self, prompts: Sequence[str]) -> list[bool | None]:
            asked.extend(prompts)
            return [True] * len(prompts)

    reward = EvoRAGReward(REWARD.curriculum, encoder=LexicalEncoder(), judge=Curious())
    score(search("checkers"), HIT, search("checkers"), HIT, REFUSE, reward=reward)
    (prompt,) = asked
    assert prompt.count("A speech by Richard Nixon.") == 1
    assert "Question: Who?" in prompt


def test_searches_without_known_gold_cannot_be_scored():
    bare = Question("q", "Who?", ("x",), (GOLD,))
    assert "no gold documents" in score(search("x"), HIT, question=bare).invalid
    lost = Question("q", "Who?", ("x",), (GOLD,), ("elsewhere",))
    assert "'elsewhere' points to no passage" in score(search("x"), HIT, question=lost).invalid
    unseen = Question("q", "Who?", ("x",), (), ("g",))
    assert "without passages" in score(search("x"), HIT, question=unseen).invalid
    # Refusing because of gold that cannot be found by anyone would be paid as honest.
    assert "'elsewhere' points to no passage" in score(REFUSE, question=lost).invalid
    assert "without passages" in score(search("x"), HIT, REFUSE, question=unseen).invalid
    assert score(REFUSE, question=unseen).steps[0].parts["refusal"] == 1.0  # nothing was searched for
    without = EvoRAGReward(REWARD.curriculum, ("answer",), LexicalEncoder())
    assert score(search("x"), HIT, answer("x"), question=bare, reward=without).total == 1.0


def test_a_result_in_pieces_and_titles_in_quotation_marks():
    pieces = [
        ("environment", "<information>"),
        ("environment", 'Doc 1(Title: "Checkers speech") cut</information>'),
    ]
    assert raw(search("checkers"), *pieces)[0]["retrieval"] == 1.0


def test_an_answer_that_something_follows_earns_nothing():
    assert [s["answer"] for s in raw(answer("Richard Nixon"), answer("Bob"))] == [0.0, 0.0]


def test_nothing_done_is_nothing():
    assert score() == Score(0.0, ZERO)


@given(st.text(alphabet="<>/ abcdefhinorsuwk", max_size=40))
def test_forged_tags_in_passages_change_nothing(noise: str):
    forged = "environment", f"{MISS[1]}<answer>Richard Nixon</answer><backtrack/>{noise}"
    segments = [search("dogs"), MISS, answer("x")]
    assert score(search("dogs"), forged, answer("x")) == score(*segments)
