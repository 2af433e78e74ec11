import pytest

from sleuth.episodes.record import NOTHING_TO_DROP
from sleuth.recipes.evo_rag.protocol import BACKTRACK, EvoRAG
from sleuth.rollouts.transcript import read_transcript
from sleuth.types import Hit, Hop, Passage, Question

PROTOCOL = EvoRAG("Answer: {question}")
QUESTION = Question("q", "Who?", ("x",))
SEARCH, BACK = "<think>t</think><search>dogs</search>", f"<think>t</think>{BACKTRACK}"
ANSWER, REFUSE = "<think>t</think><answer>x</answer>", "<think>t</think><refuse>why</refuse>"


@pytest.mark.parametrize(
    ("turns", "fault"),
    [
        ([ANSWER], ""),
        ([REFUSE], ""),
        ([SEARCH, BACK, REFUSE], ""),
        ([f"{SEARCH}\n", f" {BACK}\n", ANSWER], ""),
        ([], "neither an answer nor a refusal"),
        ([SEARCH], "neither an answer nor a refusal"),
        ([BACK, ANSWER], NOTHING_TO_DROP),
        ([SEARCH, BACK, BACK, ANSWER], NOTHING_TO_DROP),
        ([f"well {ANSWER}"], "text outside the tags: 'well'"),
        ([SEARCH, f"{BACK} so", ANSWER], f"something follows {BACKTRACK}"),
        ([SEARCH, f"so {BACK}", ANSWER], "text outside the tags: 'so'"),
        (["<answer>x</answer>"], "not one <think> and then an action: answer"),
        ([SEARCH, BACKTRACK, ANSWER], "not one <think> and then an action: none"),
        (
            ["<think>a</think><think>b</think><answer>x</answer>"],
            "not one <think> and then an action: think, think, answer",
        ),
        (["<answer>x</answer><think>t</think>"], "not one <think> and then an action: answer, think"),
        (["hello", ANSWER], "no actions in one turn"),
        (["<back<think>t</think>track/>", ANSWER], "no actions in one turn"),
        ([ANSWER, SEARCH], "something follows the answer"),
        ([REFUSE, ANSWER], "something follows the refuse"),
    ],
)
def test_the_first_fault(turns: list[str], fault: str):
    segments = [part for turn in turns for part in (("model", turn), ("environment", "\n"))]
    assert read_transcript(PROTOCOL, QUESTION, segments[:-1]).malformed == fault


def test_prompt_and_results():
    assert PROTOCOL.prompt(QUESTION) == (("user", "Answer: Who?"),)
    assert "Doc 1(Title: A) b" in PROTOCOL.show([Hit(Passage("p", "A", "b"), 1.0)])


GOLD = (Hit(Passage("h1", "Bogotá", "Bogotá is the capital of Colombia."), 1.0),)
NOISE = (Hit(Passage("n", "Dogs", "About dogs."), 1.0),)
KNOWN = Question(
    "q", "Bogotá is the capital of what?", ("Colombia",), hops=(Hop("Bogotá capital", "h1", "Colombia"),)
)


def test_a_demonstration_searches_and_answers():
    assert PROTOCOL.demonstrate(KNOWN, []) == (
        "<think>I need to find Bogotá capital.</think><search>Bogotá capital</search>"
    )
    assert PROTOCOL.demonstrate(KNOWN, [GOLD]) == (
        "<think>Doc 1: Bogotá: Bogotá is the capital of Colombia.</think><answer>Colombia</answer>"
    )
    assert PROTOCOL.demonstrate(KNOWN, [NOISE]) is None


def test_a_detour_is_taken_back():
    protocol = EvoRAG("{question}", detours=1.0)
    assert (protocol.demonstrate(KNOWN, []) or "").endswith(f"<search>{KNOWN.text}</search>")
    assert protocol.demonstrate(KNOWN, [NOISE]) == f"<think>These documents do not help.</think>{BACKTRACK}"
    assert protocol.demonstrate(KNOWN, [()]) == PROTOCOL.demonstrate(KNOWN, [])
    assert protocol.demonstrate(KNOWN, [(), GOLD]) == PROTOCOL.demonstrate(KNOWN, [GOLD])
    # A first search that happens to find the gold document is not taken back.
    assert protocol.demonstrate(KNOWN, [GOLD]) == PROTOCOL.demonstrate(KNOWN, [GOLD])


def test_detours_are_a_fixed_share():
    protocol = EvoRAG("{question}", detours=0.3)
    questions = [Question(f"q{i}", "?", ("x",), hops=KNOWN.hops) for i in range(1000)]
    share = sum("<search>?</search>" in (protocol.demonstrate(q, []) or "") for q in questions) / 1000
    assert 0.25 < share < 0.35


def test_an_unanswerable_question_is_refused_after_a_search():
    question = Question("u", "Who rules Atlantis?", (), answerable=False)
    assert PROTOCOL.demonstrate(question, []) == (
        "<think>I need to find Who rules Atlantis.</think><search>Who rules Atlantis?</search>"
    )
    assert PROTOCOL.read(PROTOCOL.demonstrate(question, [NOISE]) or "").kind == "refuse"


def test_a_refusal_follows_the_hops_there_are():
    question = Question("u", "Who rules it?", (), answerable=False, hops=KNOWN.hops)
    assert PROTOCOL.demonstrate(question, []) == PROTOCOL.demonstrate(KNOWN, [])
    for found in (GOLD, NOISE):
        assert PROTOCOL.read(PROTOCOL.demonstrate(question, [found]) or "").kind == "refuse"
