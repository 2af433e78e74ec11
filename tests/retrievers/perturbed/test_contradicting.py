from pathlib import Path

import pytest

from sleuth.errors import ConfigError, DataError, RetrievalError
from sleuth.retrievers.all_given import AllGiven
from sleuth.retrievers.perturbed.contradicting import Contradicting, contradiction
from sleuth.types import Passage, Question

GOLD = Passage("g", "Ada Lovelace", "Ada Lovelace was born in London. LONDON, in 1815.")
OTHER = Passage("o", "London", "London is a city.")


def question(name: str) -> Question:
    return Question(name, "Where?", ("London", "London, UK"), (OTHER, GOLD), ("g", "missing"), dataset="d")


@pytest.fixture
def answers(tmp_path: Path) -> str:
    path = tmp_path / "wrong.jsonl"
    rows = [f'{{"dataset": "d", "id": "q{i}", "answer": "Oslo"}}' for i in range(8)]
    path.write_text("\n".join(rows) + "\n")
    return str(path)


def shown(answers: str, count: int, name: str = "q0") -> list[tuple[str, str]]:
    retriever = Contradicting(AllGiven(), count, answers).for_question(question(name))
    return [(hit.passage.id, hit.passage.text) for hit in retriever.search(["x"], 5)[0]]


def test_gold_stays_and_gets_its_contradictions(answers: str):
    denied = "Ada Lovelace was born in Oslo. Oslo, in 1815."
    for count in (0, 1, 2, 4):
        found = dict(shown(answers, count))
        assert found.pop("g") == GOLD.text
        assert found.pop("o") == OTHER.text  # no gold passage: never denied, though it names the answer
        assert found == {f"g#contradiction-{i}": denied for i in range(1, count + 1)}
    assert [name for name, _ in shown(answers, 2, "other")] == ["o", "g"]  # the file has no wrong answer


def test_contradictions_come_before_the_gold_passage_for_some_questions_only(answers: str):
    places = set()
    for i in range(8):
        ids = [name for name, _ in shown(answers, 2, f"q{i}")]
        assert shown(answers, 2, f"q{i}") == shown(answers, 2, f"q{i}")
        assert abs(ids.index("g") - ids.index("g#contradiction-1")) <= 2
        places.add(ids.index("g") < ids.index("g#contradiction-1"))
    assert places == {True, False}


@pytest.mark.parametrize(
    ("text", "golds", "expected"),
    [
        ("Born in 1815.", ("1815",), "Born in Oslo."),
        ("Anno 18155 and 1815th", ("1815",), None),  # whole words only
        ("the U.S. army", ("US",), None),  # says it in a spelling that is not found as written
        ("US and U.S.", ("US",), None),  # would still say it
        ("a+b (c)", ("b (c)",), "a+Oslo"),  # no pattern characters
        ("New York City, New York", ("New York", "New York City"), "Oslo, Oslo"),  # the longest first
        ("anything", ("", " "), None),
        ("yes", (), None),
    ],
)
def test_the_answer_is_replaced_as_a_whole(text: str, golds: tuple[str, ...], expected: str | None):
    made = contradiction(Passage("p", "T", text), golds, "Oslo")
    assert (made.text if made else None) == expected
    made = contradiction(Passage("p", "T", "x is y"), ("y",), r"\1 \g<0>")
    assert made is not None
    assert made.text == r"x is \1 \g<0>"  # no template


def test_identity_changes_with_the_wrong_answers(answers: str):
    before = Contradicting(AllGiven(), 1, answers).identity()
    found = [before[name] for name in ("retriever", "count", "of.retriever")]
    assert found == ["contradicting", "1", "given-all"]
    Path(answers).write_text('{"dataset": "d", "id": "q", "answer": "Rome"}\n')
    assert Contradicting(AllGiven(), 1, answers).identity()["answers"] != before["answers"]
    assert Contradicting(AllGiven(), 0).identity()["answers"] == ""


def test_bad_input(tmp_path: Path):
    with pytest.raises(ConfigError, match="-1"):
        Contradicting(count=-1)
    with pytest.raises(RetrievalError, match="contradictions need wrong answers"):
        Contradicting(AllGiven()).for_question(question("q"))
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": 3}\n')
    with pytest.raises(RetrievalError, match="no wrong answers"):
        Contradicting(AllGiven(), 1, str(path)).for_question(question("q"))
    with pytest.raises(DataError, match="no file"):
        Contradicting(AllGiven(), 1, str(tmp_path / "none")).identity()
