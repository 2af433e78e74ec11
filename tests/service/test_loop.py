"""The whole loop with a tiny real model: serve, judge, export, train, and serve what was trained."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from sleuth.cli import main
from sleuth.storage import read_lines
from support.contracts import DOCUMENTS, QUESTION

Serve = Callable[..., Any]


@pytest.mark.slow
def test_corrections_are_trained_on_and_the_run_is_asked(
    serve: Serve, tiny_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    served = serve()
    for question in (QUESTION, "Who signed the contract of 2019?"):
        asked = httpx.post(
            f"{served.url}/v1/responses", json={"model": "contracts", "input": question}
        ).json()
        body = {"episode": asked["id"], "thumb": "down", "correction": "Ann Bell"}
        httpx.post(f"{served.url}/feedback", json=body).raise_for_status()
    questions, corpus, index, run = (
        tmp_path / name for name in ("train.jsonl", "corpus.jsonl", "idx", "run")
    )
    assert main(["feedback", str(served.store), "-o", str(questions)]) == 0
    corpus.write_text(
        "".join(json.dumps({"id": p.id, "title": p.title, "text": p.text}) + "\n" for p in DOCUMENTS)
    )
    assert main(["index", str(corpus), "-o", str(index)]) == 0
    data = f"jsonl:{questions}"
    sizes = {
        "model": tiny_model,
        "train_data": data,
        "eval_data": data,
        "steps": 1,
        "batch": 1,
        "warm_start_examples": 2,
    }
    sizes |= {"max_steps": 2, "max_new_tokens": 12, "max_passage_tokens": 200, "max_context": 900}
    settings = [word for name, value in sizes.items() for word in ("--set", f"scale.{name}={value}")]
    assert main(["train", "search-r1/cpu", *settings, "--index", str(index), "-o", str(run)]) == 0
    preferences, judged = tmp_path / "preferences", tmp_path / "judged-train.jsonl"
    rows = [row | {"rejected": ["Tom Reed"]} for row in read_lines(questions)]
    judged.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sizes |= {"train_data": f"jsonl:{judged}"} | {"warm_start_examples": 0, "temperature": 1.0}
    settings = [word for name, value in sizes.items() for word in ("--set", f"scale.{name}={value}")]
    example = str(Path(__file__).parents[2] / "examples" / "train_on_feedback.py")
    assert main(["train", example, *settings, "--index", str(index), "-o", str(preferences)]) == 0
    rows = list(read_lines(preferences / "metrics.jsonl"))
    assert [row["update/pairs"] for row in rows if "update/pairs" in row] == [1.0], rows
    capsys.readouterr()
    assert main(["ask", QUESTION, "--run", str(run), "--index", str(index), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] in (
        "supported",
        "unsupported",
        "not_found",
        "no_answer",
    )
    shared = tmp_path / "shared"
    assert main(["export", "hub", str(run), "-o", str(shared)]) == 0
    card = (shared / "README.md").read_text()
    assert "# search-r1/cpu" in card
    assert "| eval |" in card
    capsys.readouterr()
    assert main(["ask", QUESTION, "--run", str(shared), "--index", str(index), "--json"]) == 0
    assert (shared / "model.safetensors").is_file()
    assert main(["export", "hub", str(run), "-o", str(shared)]) == 1
    assert "is not empty" in capsys.readouterr().err
    page = tmp_path / "page.html"
    assert main(["show", str(run), "--html", str(page)]) == 0
    assert "reward/total" in page.read_text()
