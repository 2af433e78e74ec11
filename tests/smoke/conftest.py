"""Eight towns and their mayors, one town without: a corpus, its index, and questions that a tiny model trains on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sleuth.corpora import open_corpus
from sleuth.retrievers.build import build_index

CITIES = ["Arlen", "Brill", "Cosk", "Dorn", "Elvet", "Farn", "Gorse", "Hilt"]


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    """A folder with corpus.jsonl, train.jsonl, dev.jsonl and index."""
    passages = [
        {"id": f"p{i}", "title": city, "text": f"The mayor of {city} is Mr {city}son."}
        for i, city in enumerate(CITIES)
    ]
    questions = [
        {
            "id": f"q{i}",
            "question": f"Who is the mayor of {city}?",
            "answers": [f"{city}son"],
            "gold_ids": [f"p{i}"],
            "hops": [{"query": f"mayor {city}", "passage_id": f"p{i}", "answer": f"{city}son"}],
        }
        for i, city in enumerate(CITIES)
    ]
    nobody = {"id": "u", "question": "Who is the mayor of Nowhere?", "answers": [], "answerable": False}
    for name, rows in (("corpus", passages), ("train", [*questions[:6], nobody]), ("dev", questions[6:])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    build_index(open_corpus(str(tmp_path / "corpus.jsonl")).passages(lambda _: None), tmp_path / "index")
    return tmp_path
