"""Recipes on rollouts by a real vLLM, in the process and as a server: warm start, updates, syncs, evaluation."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from sleuth.experiment import Experiment
from sleuth.recipes import load_recipe
from support.ranked import on_ranks
from support.towns import CITIES, small
from support.vllm_serving import train_on_server, vllm_serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("vllm") is None, reason="vllm is not installed here: make test-vllm"
    ),
]
SETTINGS: dict[str, list[str]] = {
    "search-r1": ["scale.lora_rank=4"],
    "eval-rar": ["algorithm.num_updates=2"],
    "evinote-rag": [],
    "arena": [],
    "eviomni": [],
    "evo-rag": ["reward.curriculum.max_steps=2", "algorithm.update_pairs=2"],
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama whose head size is one that vLLM's attention supports."""
    from support.models import TOKENIZER, build_model

    folder = tmp_path_factory.mktemp("tiny-model")
    build_model(max_position_embeddings=1024, hidden_size=64, head_dim=32).save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    return folder


def add_passages(folder: Path) -> None:
    """Give every question its passages, for the recipes that read given paragraphs."""
    passages = [{"id": f"p{i}", "title": city, "text": f"Mayor: {city}son."} for i, city in enumerate(CITIES)]
    for path in (folder / "train.jsonl", folder / "dev.jsonl"):
        rows = [json.loads(line) | {"passages": passages} for line in path.read_text().splitlines()]
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def gaps(run: Path) -> list[float]:
    rows: list[dict[str, Any]] = list(map(json.loads, (run / "metrics.jsonl").read_text().splitlines()))
    return [row["rollouts/logprob_gap"] for row in rows if "rollouts/logprob_gap" in row]


@pytest.mark.parametrize("name", SETTINGS)
def test_it_trains_end_to_end(name: str, towns: Path, model: Path):
    scale = {"engine": "vllm", "precision": "float32", "max_new_tokens": 24}
    recipe = small(load_recipe(f"{name}/cpu"), model, towns, **scale).with_settings(SETTINGS[name])
    run = towns / "run"
    add_passages(towns)
    summary = Experiment(recipe, run, index=str(towns / "index"), say=lambda _: None).run()
    assert (summary["stopped"], summary["faults"]) == ("done", 0)
    assert (run / "model" / "config.json").is_file()
    found = gaps(run)
    assert all(gap < 1e-3 for gap in found), "rollouts of older weights"
    assert len(found) == 2 or name != "arena", "nothing was learnt, so nothing was compared"


@pytest.mark.parametrize("ranks", [1, 2])
def test_it_trains_on_a_server(ranks: int, towns: Path, model: Path, tmp_path: Path):
    add_passages(towns)
    with vllm_serving(model, tmp_path / "log") as url:
        found = on_ranks(ranks, train_on_server, towns, model, url, patience=240)
    assert found == [None] * ranks
    assert all(gap < 1e-3 for gap in gaps(towns / "run")), "rollouts of older weights"
    assert len(gaps(towns / "run")) == 2
    result = json.loads((towns / "run" / "eval" / "result.json").read_text())
    assert result["engine"]["engine"] == "VLLMServer"
