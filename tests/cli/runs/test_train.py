"""sleuth train with a tiny real model: what it prints, and that the same command only reads what is done."""

import json
from pathlib import Path

import pytest

from sleuth.cli import main
from support.towns import questions, write_towns


@pytest.mark.slow
def test_before_and_after_in_one_table(tmp_path: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]):
    towns = write_towns(tmp_path, train=questions()[:5], dev=questions()[5:])
    data = [
        f"{name}_data=jsonl:{towns / file}"
        for name, file in (("train", "train.jsonl"), ("eval", "dev.jsonl"))
    ]
    sizes = "max_steps=2 max_new_tokens=12 max_passage_tokens=200 max_context=900"
    sizes += " warm_start_examples=2 steps=1 batch=2 eval_every=1"
    scale = [f"model={tiny_model}", *data, *sizes.split()]
    settings = [part for setting in scale for part in ("--set", f"scale.{setting}")]
    command = ["train", "search-r1/cpu", *settings, "--index", str(towns / "index")]
    command += ["-o", str(tmp_path / "run")]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert "before" in out
    assert "after training" in out
    assert f"1 steps, done; run folder: {tmp_path / 'run'}" in out.replace("\n", "")
    assert "training takes likely" in err
    assert "{" not in out
    assert main([*command, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["steps"], summary["stopped"], summary["n"]) == (1, "done", 3)
