"""A folder exported for verl: a recipe over two passages, a tiny model, and a server's address that none answers."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.cli import main

QUESTIONS = ("capital of France", "capital of Japan", "capital of Peru", "capital of Chile")
PASSAGES = [
    {"title": "France", "text": "Paris is the seat of France."},
    {"title": "Japan", "text": "Tokyo is the seat of Japan."},
]

Export = Callable[..., Path]


@pytest.fixture
def export(tmp_path: Path, tiny_model: Path) -> Export:
    """Exports a recipe at a small scale; words after its name are further arguments."""
    rows = [
        {
            "id": f"q{i}",
            "question": text,
            "answers": [answer],
            "passages": [dict(p, id=f"p{i}{j}") for j, p in enumerate(PASSAGES)],
        }
        for i, (text, answer) in enumerate(
            zip(QUESTIONS, ("Paris", "Tokyo", "Lima", "Santiago"), strict=True)
        )
    ]
    data = tmp_path / "questions.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sizes = {"train_data": f"jsonl:{data}", "eval_data": f"jsonl:{data}", "model": tiny_model, "batch": 4}
    sizes |= {"dev_questions": 0, "warm_start_examples": 0, "max_context": 4000, "max_new_tokens": 200}
    settings = [word for key, value in sizes.items() for word in ("--set", f"scale.{key}={value}")]

    def run(recipe: str, *words: str) -> Path:
        folder = tmp_path / "exported"
        place = ["--index", "http://127.0.0.1:9", "--gpus", "2", "-o", str(folder)]
        assert main(["export", "verl", recipe, *settings, *place, *words]) == 0
        return folder

    return run
