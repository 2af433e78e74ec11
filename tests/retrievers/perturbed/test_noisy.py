from pathlib import Path

import pytest

from sleuth.errors import ConfigError, RetrievalError
from sleuth.retrievers.all_given import AllGiven
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.perturbed.noisy import Noisy
from sleuth.types import Passage, Question

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


def test_bad_input(pool: str):
    with pytest.raises(ConfigError, match="-1"):
        Noisy(noise=-1)
    with pytest.raises(RetrievalError, match="pool"):
        Noisy(AllGiven(), 1).for_question(QUESTION)
    with pytest.raises(RetrievalError, match="too few"):
        Noisy(AllGiven(), 12, pool).for_question(QUESTION).search(["x"], 2)
