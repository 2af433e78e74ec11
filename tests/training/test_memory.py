"""Forecast of peak memory: equal to what real tensors take, by hand between passes, refused in one line."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from sleuth.algorithms.grpo import GRPO
from sleuth.errors import ConfigError
from sleuth.training import memory
from sleuth.training.memory import Live, Outline, Passes, Shape, check_memory, forecast_memory, largest_shapes
from sleuth.training.parallel import ranks
from sleuth.training.policy import Policy
from support import peak, toy

PLAN = replace(toy.PLAN, guards=False, rollout_batch=1, precision="float32")
FREE = GRPO(group_size=4, beta=0.0)


@pytest.fixture(autouse=True)
def outlined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans are of a toy model."""

    def load_outline(name: str) -> tuple[Any, None]:
        with torch.device("meta"):
            return toy.model(), None

    monkeypatch.setattr(memory, "load_outline", load_outline)


def forecast(algorithm: GRPO = FREE, **changes: Any) -> memory.Need:
    plan = replace(PLAN, **changes)
    return forecast_memory(plan, algorithm, Outline(plan), 1e9)


@pytest.fixture
def no_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "measure_passes", lambda outline, shapes: Passes(0, 0, 0))


N = sum(p.numel() for p in toy.model().parameters())


@pytest.mark.usefixtures("no_passes")
@pytest.mark.parametrize(
    ("changes", "algorithm", "rollouts", "update"),
    [
        ({}, FREE, 12 * N, 16 * N),  # weights, two moments; and gradients
        ({"guards": True}, FREE, 16 * N, 20 * N),  # they compare with the first policy
        ({}, GRPO(beta=0.1), 16 * N, 20 * N),
        ({"guards": True, "steps": 0}, FREE, 12 * N, 16 * N),
        ({"shard": True}, FREE, 12 * N, 16 * N),  # one rank has nobody to share with
        ({"engine": "openvino"}, FREE, 20 * N, 20 * N),  # its arrays, and while it samples their packed copy
        ({"engine": "vllm"}, FREE, 16 * N + 1.5 * 2**30, 20 * N + 1.5 * 2**30),
        ({"engine": "vllm", "precision": "bfloat16"}, FREE, 14 * N + 1.5 * 2**30, 18 * N + 1.5 * 2**30),
    ],
)
def test_bytes_for_each_parameter(
    changes: dict[str, Any], algorithm: GRPO, rollouts: float, update: float
) -> None:
    assert forecast(algorithm, **changes) == (rollouts, update, pytest.approx(0, abs=2e9))


@pytest.mark.usefixtures("no_passes")
def test_adapters_are_all_that_has_gradients_and_moments() -> None:
    adapters = sum(p.numel() for p in Policy(toy.model(), lora_rank=6).trainable_parameters())
    need = forecast(lora_rank=6)
    assert need.rollouts == 4 * (N + adapters) + 8 * adapters
    assert need.update == need.rollouts + 4 * adapters
    assert need.saving == 8 * (N + adapters)  # a merged copy


@pytest.mark.usefixtures("no_passes")
def test_ranks_divide_all_but_the_copy_that_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "_group", {"rank": 0, "count": 4})
    need = forecast(shard=True, guards=True)
    layer = 4 * 32 * 32 + 3 * 32 * 64 + 2 * 32
    assert need.rollouts == 4 * N + 16 * N / 4
    assert need.update == 20 * N / 4 + 8 * (N - 2 * layer + 2 * layer)  # gathered: embeddings and two layers
    assert forecast(guards=True).update == 20 * N


@pytest.mark.usefixtures("no_passes")
def test_vllm_takes_half_of_what_the_policy_leaves_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(PLAN, engine="vllm")
    outline = Outline(plan)
    outline.device = torch.device("cuda")
    need = forecast_memory(plan, FREE, outline, 1e6)
    assert need == (12 * N + (1e6 - 4 * N) / 2, 16 * N, 0)  # asleep during updates


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, Shape(0, 3, 30, 10)),
        ({"precision": "bfloat16"}, Shape(0, 3, 30, 10)),
        ({}, Shape(20, 4, 10, 9)),
        ({"precision": "bfloat16"}, Shape(20, 4, 10, 9)),
        ({"lora_rank": 2}, Shape(20, 4, 10, 9)),
        ({"gradient_checkpointing": True}, Shape(0, 3, 30, 10)),
    ],
)
def test_a_pass_takes_what_real_tensors_take(options: dict[str, Any], shape: Shape) -> None:
    plan = replace(PLAN, **options)
    heap = memory.HEAP_LORA if plan.lora_rank else memory.HEAP
    found = memory.measure_passes(Outline(plan), (shape,))
    policy = Policy(toy.model(), None, **({"precision": "float32"} | options))
    policy.forward.make_trials()
    with Live() as live:
        for parameter in policy.model.parameters():
            parameter.view(-1)  # an operation, by which the weights are counted
        for parameter in policy.trainable_parameters():
            parameter.grad = torch.zeros_like(parameter)
        live.peak = before = live.now
        memory._update(policy.forward, shape)
    assert found.update / heap == pytest.approx(live.peak - before, rel=0.05)
    bytes_each = 2 if policy.autocast_dtype else 4
    assert found.cache_token == bytes_each * 2 * 2 * 32  # keys and values in two layers


def test_the_largest_passes_fill_the_micro_batch() -> None:
    plan = replace(PLAN, max_context=100, micro_batch_tokens=250, max_new_tokens=10, max_passage_tokens=90)
    # A prompt of 40, then as many of the longest rows as fit, or a row for each sample.
    assert largest_shapes(plan, 5, 40) == (Shape(40, 3, 60, 10), Shape(40, 5, 42, 10))
    assert largest_shapes(plan, 5, 40, shares=False) == (Shape(0, 2, 100, 10), Shape(0, 5, 50, 10))
    # A row that alone is longer than the micro-batch has a pass to itself.
    assert largest_shapes(replace(plan, micro_batch_tokens=50), 5, 40)[0] == Shape(0, 1, 100, 10)


def test_more_than_is_free_is_refused_with_the_setting_that_helps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refusal(free: float, **changes: Any) -> str:
        monkeypatch.setattr(memory, "free_ram", lambda: int(free))
        plan = replace(PLAN, **changes)
        with pytest.raises(ConfigError) as caught:
            check_memory(plan, FREE, Outline(plan))
        assert "\n" not in str(caught.value)
        return str(caught.value)

    sizes = {"micro_batch_tokens": 4096, "max_context": 32, "warm_start_batch": 128}
    need = forecast(**sizes).peak
    assert "cpu has 0.0 GB free: set scale.micro_batch_tokens=1024, " in refusal(need - 1, **sizes)
    assert "so take a smaller scale.model" in refusal(1000, **sizes)
    assert "set scale.engine=transformers, " in refusal(1e9, engine="vllm")
    monkeypatch.setattr(memory, "free_ram", lambda: int(need + 1))
    assert check_memory(replace(PLAN, **sizes), FREE, Outline(PLAN)).startswith("about 0.")


def test_each_rank_has_its_part_of_the_main_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    need = forecast().peak
    monkeypatch.setattr(memory, "free_ram", lambda: int(1.5 * need))
    assert check_memory(PLAN, FREE, Outline(PLAN))
    monkeypatch.setattr(ranks, "_group", {"rank": 0, "count": 2})
    with pytest.raises(ConfigError, match="on each of 2 ranks"):
        check_memory(PLAN, FREE, Outline(PLAN))


def test_a_model_that_cannot_be_forecast_is_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def chooses_experts(*arguments: Any) -> Passes:
        raise RuntimeError("aten.nonzero.default\nmore")

    monkeypatch.setattr(memory, "measure_passes", chooses_experts)
    words = check_memory(PLAN, FREE, Outline(PLAN))
    assert words == "memory that cannot be forecast (aten.nonzero.default)"


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the peak of a process is read as Linux shows it"
)
@pytest.mark.parametrize("options", [{}, {"lora_rank": 8}])
def test_the_peak_of_a_process_whose_heap_has_no_gaps_is_forecast(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_outline(name: str) -> tuple[Any, None]:
        with torch.device("meta"):
            return peak.model(), None

    monkeypatch.setattr(memory, "load_outline", load_outline)
    monkeypatch.setattr(memory, "largest_shapes", lambda *arguments, **settings: peak.SHAPES)
    for heap in ("HEAP", "HEAP_LORA"):
        monkeypatch.setattr(memory, heap, 1.0)
    command = [sys.executable, peak.__file__, json.dumps(options | {"precision": "float32"})]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    environment["MALLOC_MMAP_THRESHOLD_"] = "65536"  # glibc then returns what is freed
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert forecast(**options).update == pytest.approx(int(done.stdout), rel=0.1)
