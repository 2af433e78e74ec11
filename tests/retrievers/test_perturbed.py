"""Retrievers made worse on purpose: noise, withheld gold, contradictions."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from sleuth.errors import DataError, RetrievalError
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.given import AllGiven, GivenParagraphs
from sleuth.retrievers.perturbed.contradicting import Contradicting, contradiction
from sleuth.retrievers.perturbed.noisy import Noisy
from sleuth.retrievers.perturbed.withholding import Withholding
from sleuth.types import Hit, Passage, Question
from support.fixed_retriever import Shown

OWN = (Passage("p1", "A", "own one"), Passage("p2", "B", "own two"))
QUESTION = Question("q", "Where?", ("Oslo",), OWN, ("n3",))


@pytest.fixture
def pool(tmp_path: Path) -> str:
    others = [Passage(f"n{i}", "N", f"noise {i}") for i in range(12)]
    build_index([*OWN, *others, Passage("answer", "", "It is Oslo.")], tmp_path / "pool")
    return str(tmp_path / "pool")


@pytest.mark.parametrize("noise", [0, 2, 4, 6, 8])
def test_noise_follows_what_was_found(pool: str, noise: int):
    retriever = Noisy(AllGiven(), noise, pool).for_question(QUESTION)
    (hits,) = retriever.search(["Where?"], 2)
    ids = [hit.passage.id for hit in hits]
    assert ids[:2] == ["p1", "p2"]
    assert len(set(ids)) == len(ids) == 2 + noise
    assert not {"n3", "answer"} & set(ids)  # gold, and one that holds the answer
    assert Noisy(AllGiven(), noise, pool).for_question(QUESTION).search(["Where?"], 2) == [hits]


def test_queries_have_noise_of_their_own(pool: str):
    one, two = Noisy(AllGiven(), 4, pool).for_question(QUESTION).search(["a", "b"], 2)
    assert one != two


def test_no_noise_needs_no_pool():
    (hits,) = Noisy(AllGiven()).for_question(QUESTION).search(["x"], 1)
    assert [hit.passage.id for hit in hits] == ["p1"]


def test_noise_needs_a_large_enough_pool(pool: str):
    with pytest.raises(RetrievalError, match="pool"):
        Noisy(AllGiven(), 1).for_question(QUESTION)
    with pytest.raises(RetrievalError, match="too few"):
        Noisy(AllGiven(), 12, pool).for_question(QUESTION).search(["x"], 2)


RIVERS = tuple(Passage(f"p{i}", f"T{i}", f"river number {i}") for i in range(5))
WHICH = Question("q", "Which river?", ("Rhine",), RIVERS, ("p1", "p3", "p4"))


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


def test_gold_is_never_found_and_leaves_no_gap():
    retriever = Withholding(AllGiven(), 3).for_question(WHICH)
    assert ids(retriever.search(["x"], 5)[0]) == ["p0", "p2"]
    assert ids(retriever.search(["x"], 1)[0]) == ["p0"]
    searched = Withholding(GivenParagraphs(), 3).for_question(WHICH).search(["river", "number"], 2)
    assert [sorted(ids(hits)) for hits in searched] == [["p0", "p2"], ["p0", "p2"]]


def test_at_most_all_gold_passages_are_withheld_and_more_include_fewer():
    retrievers = [Withholding(AllGiven(), withheld).for_question(WHICH) for withheld in (0, 1, 2, 3, 9)]
    shown = [set(ids(retriever.search(["x"], 9)[0])) for retriever in retrievers]
    assert [len(found) for found in shown] == [5, 4, 3, 2, 2]
    assert shown[0] > shown[1] > shown[2] > shown[3] == shown[4]


def test_identity_names_level_and_retriever():
    identity = {"retriever": "withholding", "withheld": "2", "of.retriever": "given-all"}
    assert Withholding(AllGiven(), 2).identity() == identity


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


def test_contradictions_need_wrong_answers(tmp_path: Path):
    with pytest.raises(RetrievalError, match="contradictions need wrong answers"):
        Contradicting(AllGiven()).for_question(question("q"))
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": 3}\n')
    with pytest.raises(RetrievalError, match="no wrong answers"):
        Contradicting(AllGiven(), 1, str(path)).for_question(question("q"))
    with pytest.raises(DataError, match="no file"):
        Contradicting(AllGiven(), 1, str(tmp_path / "none")).identity()


def test_gold_passages_are_known_by_their_text_in_an_index_of_other_ids(tmp_path: Path):
    gold = Passage(
        "eiffel", "Gustave Eiffel", "Gustave Eiffel, who built the tower, was born in Dijon in 1832."
    )
    question = Question("q", "Where was he born?", ("Dijon",), (gold,), ("eiffel",))
    shown = Shown((Passage("1001", gold.title, gold.text), Passage("eiffel", "Tea", "Tea is a drink.")))
    (left,) = Withholding(shown, 1).for_question(question).search(["x"], 5)
    assert ids(left) == ["eiffel"]  # another passage's number in this index
    (tmp_path / "wrong.jsonl").write_text('{"id": "q", "answer": "Oslo"}\n')
    contradicting = Contradicting(shown, 1, str(tmp_path / "wrong.jsonl")).for_question(question)
    assert any("1001#contradiction-1" in hit.passage.id for hit in contradicting.search(["x"], 5)[0])
