"""Several ranks give the loss, the gradients and the weights of one, and end together when one fails."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.errors import ConfigError, RankError, TrainingError
from sleuth.rollouts.store import TrajectoryReader
from sleuth.training.parallel import ranks
from sleuth.training.parallel.ranks import RankLostError
from sleuth.training.update.layout import FILLER, aligned, plan, rows_of, shape_of
from support import ranked
from support.ranked import RAGGED, alone, on_ranks
from support.towns import CITIES, questions
from support.toy import timeless

slow = pytest.mark.slow


def relative(a: Any, b: Any) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def test_one_process_is_the_only_rank() -> None:
    assert (ranks.count(), ranks.is_first()) == (1, True)
    assert ranks.gather(lambda: 3) == [3]
    assert ranks.share([1, 2, 3]) == [1, 2, 3]
    assert ranks.share([1, 2, 3], [5, 1, 2]) == [1, 2, 3]


def parts(monkeypatch: pytest.MonkeyPatch, items: list[int], costs: Sequence[float] = ()) -> list[list[int]]:
    found = []
    for rank in range(3):
        monkeypatch.setattr(ranks, "_group", {"rank": rank, "count": 3})
        found.append(ranks.share(items, costs))
    return found


@pytest.mark.parametrize("size", [0, 1, 2, 7, 9])
def test_shares_in_order_are_the_whole(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    shares = parts(monkeypatch, list(range(size)))
    assert list(chain.from_iterable(shares)) == list(range(size))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30))
def test_shares_by_cost_differ_from_the_mean_by_no_more_than_the_largest_item(costs: list[int]) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        shares = parts(monkeypatch, list(range(len(costs))), costs)
    assert list(chain.from_iterable(shares)) == list(range(len(costs)))
    for share in shares:
        assert abs(sum(costs[i] for i in share) - sum(costs) / 3) <= max(costs)


def test_aligned_plans_have_the_same_passes() -> None:
    rows = [[row for i in own for row in rows_of(i, RAGGED[i])] for own in ([0, 1, 2, 3, 4], [5, 6, 7], [])]
    plans = [plan(own, 30) for own in rows]
    shapes = [shape_of(bundles) for bundles in plans]
    assert len({str(shape) for shape in shapes}) == 3
    full = [aligned(bundles, shapes) for bundles in plans]
    passes = [[(bool(bundle.prefix), len(bundle.batches)) for bundle in bundles] for bundles in full]
    assert passes[0] == passes[1] == passes[2]
    for own, bundles in zip(rows, full, strict=True):
        found = [row for bundle in bundles for batch in bundle.batches for row in batch]
        assert sorted(row.tokens for row in found if row.index != FILLER) == sorted(row.tokens for row in own)
        for bundle in bundles:
            for row in (row for batch in bundle.batches for row in batch):
                assert row.tokens[: bundle.prefix] == bundle.common
                assert bundle.prefix < len(row.tokens) - 1 or row.index != FILLER


CASES = [
    {"share_prefix": share_prefix, "micro_batch_tokens": budget}
    for share_prefix in (True, False)
    for budget in (16, 4096)
]


@slow
@pytest.mark.parametrize("shard", [False, True])
@pytest.mark.parametrize(("lora_rank", "checkpointing"), [(0, False), (4, False), (0, True)])
def test_two_ranks_have_the_loss_and_gradients_of_one(
    shard: bool, lora_rank: int, checkpointing: bool
) -> None:
    expected, weights = alone(ranked.gradients, False, lora_rank, checkpointing, CASES)
    for found, held in on_ranks(2, ranked.gradients, shard, lora_rank, checkpointing, CASES):
        for (loss, kl, tokens, gradient), one in zip(found, expected, strict=True):
            assert (loss, kl, tokens) == pytest.approx(one[:3], rel=1e-5, abs=1e-6)
            assert relative(gradient, one[3]) < 1e-5
        assert held == pytest.approx(weights / 2 if shard else weights, rel=0.02)


@slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"shard": True},
        {"shard": True, "lora_rank": 2},
        {"algorithm": "rejection"},
        {"algorithm": "dpo", "lr_schedule": "constant", "lr_warmup": 0.0},
        {"candidates": 8, "refill": 1.0, "dev_questions": 3},
    ],
    ids=str,
)
def test_a_run_on_two_ranks_ends_with_the_weights_of_one(tmp_path: Path, options: dict[str, Any]) -> None:
    options = {"steps": 3} | options
    expected = alone(ranked.run, tmp_path / "one", options)
    for found in on_ranks(2, ranked.run, tmp_path / "two", options):
        assert relative(found, expected) < 1e-4
    episodes = [
        [(t.question.id, t.sample, t.tokens) for t in TrajectoryReader(path)]
        for name in ("one", "two")
        for path in sorted((tmp_path / name / "rollouts").glob("step-*"))
    ]
    assert episodes[:3] == episodes[3:]
    assert any(row["update/made"] for row in timeless(tmp_path / "two"))
    for one, two in zip(timeless(tmp_path / "one"), timeless(tmp_path / "two"), strict=True):
        assert one.keys() == two.keys()
        figures = one.keys() - {"phase", "update/tokens"}  # padding differs
        assert [two[key] for key in figures] == pytest.approx(
            [one[key] for key in figures], rel=1e-3, abs=1e-4
        )


@slow
@pytest.mark.parametrize("shard", [False, True])
def test_a_run_continues_on_another_number_of_ranks(tmp_path: Path, shard: bool) -> None:
    expected = alone(ranked.run, tmp_path / "whole", {"steps": 5})
    options = {"steps": 5, "shard": shard}
    for count, until in ((2, 2), (1, 1), (2, 0)):
        found = on_ranks(count, ranked.run, tmp_path / "cut", options | {"until": until})[0]
    assert relative(found, expected) < 1e-4
    assert [row["step"] for row in timeless(tmp_path / "cut")] == [1, 2, 3, 4, 5]


@slow
@pytest.mark.parametrize("shard", [False, True])
def test_a_killed_rank_ends_the_others(tmp_path: Path, shard: bool) -> None:
    options = {"steps": 3, "shard": shard}
    began = time.monotonic()
    survivor, killed = on_ranks(2, ranked.run, tmp_path / "cut", options | {"kill": 4, "save_every": 1})
    assert time.monotonic() - began < 40
    assert killed == -signal.SIGKILL
    assert isinstance(survivor, RankLostError)
    assert "another rank ended" in str(survivor)
    assert "\n" not in str(survivor)
    expected = alone(ranked.run, tmp_path / "whole", options)
    assert relative(alone(ranked.run, tmp_path / "cut", options), expected) < 1e-4


@slow
def test_an_error_on_one_rank_is_printed_by_one_and_ends_both(tmp_path: Path) -> None:
    found = on_ranks(2, ranked.run, tmp_path, {"steps": 3, "fails": TrainingError})
    assert all("ignored" in str(error) for error in found)
    assert sorted(isinstance(error, RankError) for error in found) == [False, True]


@slow
def test_an_error_is_printed_once_though_the_rank_with_the_store_has_ended() -> None:
    first, last = on_ranks(2, ranked.fail_and_leave_last)
    assert isinstance(first, TrainingError)
    assert isinstance(last, RankError)


@slow
def test_a_bug_on_one_rank_keeps_its_type_and_ends_the_others(tmp_path: Path) -> None:
    other, own = on_ranks(2, ranked.run, tmp_path, {"steps": 3, "fails": ZeroDivisionError})
    assert isinstance(own, ZeroDivisionError)
    assert isinstance(other, RankLostError)
    assert "ZeroDivisionError: the second rank" in str(other)


@slow
def test_an_indivisible_batch_is_refused_before_the_start(tmp_path: Path) -> None:
    found = on_ranks(2, ranked.run, tmp_path, {"batch": 3})
    assert any(isinstance(error, ConfigError) for error in found)
    assert all("scale.batch = 3 questions cannot be divided among 2 ranks" in str(error) for error in found)
    assert not (tmp_path / "checkpoints").exists()


@slow
def test_a_preference_model_refuses_divided_weights(tmp_path: Path) -> None:
    options = {"algorithm": "dpo", "lr_schedule": "constant", "lr_warmup": 0.0, "shard": True}
    assert all("set scale.shard=false" in str(error) for error in on_ranks(2, ranked.run, tmp_path, options))


@slow
@pytest.mark.parametrize("shard", [False, True])
def test_a_warm_start_on_two_ranks_ends_with_the_weights_of_one(tmp_path: Path, shard: bool) -> None:
    expected = alone(ranked.fit, tmp_path / "one", False)
    for found in on_ranks(2, ranked.fit, tmp_path / "two", shard):
        assert relative(found, expected) < 1e-4


def torchrun(folder: Path, model: Path, **scale: object) -> subprocess.CompletedProcess[str]:
    """`sleuth train` on two ranks, on questions about towns with two passages each."""
    tea = {"id": "tea", "title": "Tea", "text": "A drink."}
    rows = [
        row | {"passages": [{"id": f"p{i}", "title": city, "text": f"Mayor: {city}son."}, tea]}
        for i, (row, city) in enumerate(zip(questions(), CITIES, strict=True))
    ]
    for name, part in (("train", rows[:5]), ("dev", rows[5:])):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)))
    sizes: dict[str, object] = {
        "model": model,
        "max_context": 1000,
        "max_new_tokens": 20,
        "steps": 2,
        "batch": 2,
        "precision": "float32",
    }
    sizes |= {"warm_start_examples": 4, "warm_start_batch": 2, "warm_start_epochs": 1}
    sizes |= {
        f"{kind}_data": f"jsonl:{folder}/{name}.jsonl" for kind, name in (("train", "train"), ("eval", "dev"))
    }
    settings = [
        word for name, value in (sizes | scale).items() for word in ("--set", f"scale.{name}={value}")
    ]
    start = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node=2",
        "-m",
        "sleuth",
    ]
    command = [*start, "train", "r1/cpu", *settings, "-o", str(folder / "run"), "--json"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)


LEAVES = """
import time
from contextlib import suppress
from pathlib import Path
from sleuth.training.parallel import ranks

def threads():
    found = 0
    for path in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # it has ended
            found += "gloo" in path.read_text()
    return found

with ranks.joined():
    import torch.distributed.fsdp
    ranks.gather(lambda: 1)
    assert threads() > 0
end = time.monotonic() + 5
while threads() and time.monotonic() < end:  # a thread that was joined is listed for a moment more
    time.sleep(0.05)
assert threads() == 0
"""


@slow
@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_no_thread_of_gloo_outlives_the_group(tmp_path: Path) -> None:
    (tmp_path / "leaves.py").write_text(LEAVES)
    start = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*start, str(tmp_path / "leaves.py")], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


@slow
def test_torchrun_trains_a_recipe_and_refuses_in_one_line(tmp_path: Path, tiny_model: Path) -> None:
    done = torchrun(tmp_path, tiny_model, shard="true", frozen_layers=0)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["steps"], summary["stopped"], summary["n"]) == (2, "done", 3)
    assert done.stderr.count("r1/cpu, variant") == 1
    rows = timeless(tmp_path / "run")
    assert [row["phase"] for row in rows] == ["warm_start"] * 2 + ["train"] * 2
    refused = torchrun(tmp_path, tiny_model, batch=3)
    assert refused.returncode != 0
    assert refused.stderr.count("sleuth: scale.batch = 3 questions cannot be divided") == 1
    refused = torchrun(tmp_path, tiny_model, shard="true")
    assert refused.stderr.count("sleuth: layers that are divided among ranks cannot be frozen") == 1
    assert "warm start" not in refused.stderr
