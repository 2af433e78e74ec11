import pytest

from sleuth.protocols.prompted.iter_retgen import IterRetGen
from sleuth.training.update.layout import rows_of
from sleuth.types import Question

QUESTION = Question("q", "Where was the author of Emma born?", ("Rome",))
ROUND_1, ROUND_2 = "Ann wrote it.\nSo the answer is: Paris.", "Ann was born in Rome.\nSo the answer is: Rome."


def test_two_rounds(play, library):
    found = library(Emma="Ann wrote it.", Ann="Born in Rome.")
    played = play(IterRetGen(), [ROUND_1, ROUND_2], found, QUESTION)
    assert played.asked == [QUESTION.text, f"Ann wrote it. So the answer is: Paris. {QUESTION.text}"]
    t = played.trajectory
    assert (t.answer, t.searches, t.ending, t.malformed) == ("Rome", 1, "answered", "")
    assert "Doc 1(Title: EMMA) Ann wrote it." in played.contexts[0]
    assert "Doc 1(Title: EMMA)" in played.contexts[1]
    assert "Doc 2(Title: ANN) Born in Rome." in played.contexts[1]
    assert "Paris" not in played.contexts[1], "a round reads the passages, not the earlier reasoning"


def test_every_round_has_a_context_of_its_own(play, library):
    played = play(IterRetGen(), [ROUND_1, ROUND_2], library(Emma="x", Ann="y"), QUESTION)
    t = played.trajectory
    assert [s.author for s in t.segments] == ["prompt", "policy", "prompt", "policy"]
    assert [s.until for s in t.segments] == [2, 2, -1, -1]
    assert bytes(token for token in t.context(3) if token < 256).decode() == played.contexts[1]
    rows = rows_of(0, t)
    assert [row.targets[0] for row in rows] == [len(t.segments[0].tokens), len(t.segments[2].tokens)]
    assert [row.tokens for row in rows] == [
        (*t.segments[i].tokens, *t.segments[i + 1].tokens) for i in (0, 2)
    ]


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_the_number_of_rounds_is_fixed(play, library, rounds: int):
    script = [f"So the answer is: {i}" for i in range(rounds)]
    played = play(IterRetGen(rounds=rounds), script, library(Emma="x"), QUESTION)
    assert (len(played.asked), played.trajectory.answer) == (rounds, str(rounds - 1))


def test_an_empty_round_searches_for_the_question_again(play):
    played = play(IterRetGen(), ["", ROUND_2], question=QUESTION)
    assert played.asked == [QUESTION.text, QUESTION.text]
    assert played.trajectory.answer == "Rome"
