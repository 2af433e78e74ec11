"""benchmarks/gpu.py on the CPU, small, so that whoever has a GPU gets a script that runs."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.models import TOKENIZER, build_model

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu.py"


@pytest.mark.slow
def test_every_part_gives_figures_or_the_reason_why_not(tmp_path: Path):
    build_model(max_position_embeddings=8192).save_pretrained(tmp_path / "model")
    TOKENIZER.save_pretrained(tmp_path / "model")
    parts = ["card", "correctness", "rollouts", "rollouts vllm", "update", "step"]
    command = [sys.executable, SCRIPT, "--device", "cpu", "--model", tmp_path / "model"]
    command += ["--json", tmp_path / "gpu.json", "--parts", *parts]
    subprocess.run(command, check=True, capture_output=True)
    figures = json.loads((tmp_path / "gpu.json").read_text())
    assert figures["correctness"]["right"]
    assert figures["rollouts"]["tokens_per_s"] > 0
    assert figures["step"]["time/step_s"] > 0
    assert figures["shares"].keys() == {"update_of_peak", "rollouts_of_bandwidth"}
    if importlib.util.find_spec("vllm") is None:
        assert "vLLM cannot be imported" in figures["rollouts vllm"]["error"]
