"""On the real benchmarks, where a developer has them: every record is read, chains are whole."""

import os
from pathlib import Path

import pytest

from sleuth.datasets import load_questions

ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("SLEUTH_SHARED_DATA", ROOT.parent / "shared" / "data"))


@pytest.mark.parametrize(
    ("name", "count", "chains"),
    [
        ("hotpotqa_dev", 455, 455),
        ("hotpotqa_dev_insufficient", 331, 0),
        ("2wiki_dev", 82, 82),
        ("musique_dev", 100, 100),
        ("nq_test", 1500, 1500),
        ("popqa_test", 500, 0),
        ("squad2_train", 3520, 1632),
    ],
)
def test_every_record_is_read(name: str, count: int, chains: int):
    path = DATA / f"{name}.jsonl.xz"
    if not path.is_file():
        pytest.skip(f"{path} is not here (set SLEUTH_SHARED_DATA)")
    loaded = load_questions(f"jsonl:{path}", strict=True)
    assert len(loaded.questions) == count
    assert sum(bool(question.hops) for question in loaded.questions) == chains
    for question in loaded.questions:
        golds = {passage.id for passage in question.passages}
        assert {hop.passage_id for hop in question.hops} <= set(question.gold_ids) <= golds
        assert all(hop.query.strip() for hop in question.hops)
