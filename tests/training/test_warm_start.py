"""Supervised fine-tuning on the toy: it fits, it resumes exactly, and it refuses emptiness."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from sleuth.errors import EngineError, TrainingError
from sleuth.training.runs.best import BestCheckpoint
from sleuth.training.runs.log import RunLog
from sleuth.training.warm_start import Choice, warm_start
from sleuth.types import Question, Segment, Trajectory
from support import toy
from support.toy import rows, timeless, weights

pytestmark = pytest.mark.usefixtures("one_thread")  # bitwise equal sums need a fixed split of the work


def gold(count: int = 10) -> list[Trajectory]:
    """Demonstrations in which every prompt, whatever its length, is answered "cd"."""
    prompts = [tuple((i + j) % 16 for j in range(3 + i % 5)) for i in range(count)]
    policy = Segment("policy", "cd", (2, 3))
    return [
        Trajectory(
            Question(f"g{i}", "x", ("cd",)), (Segment("prompt", f"p{i}", prompt), policy), ending="answered"
        )
        for i, prompt in enumerate(prompts)
    ]


def run(folder: Path, trajectories: list[Trajectory], seed: int = 0, **options: Any) -> Any:
    plan = {name: options.pop(name) for name in list(options) if name in toy.PLAN.__dataclass_fields__}
    scale = replace(toy.PLAN, **{"warm_start_epochs": 3, "warm_start_batch": 4, "warm_start_lr": 1e-2} | plan)
    policy, _ = toy.new_learner(seed)
    with RunLog(folder, console=toy.quiet()) as log:
        return warm_start(policy, trajectories, scale, log, **options), policy


def test_it_fits_the_demonstrations(tmp_path: Path) -> None:
    result, _ = run(tmp_path, gold(), warm_start_epochs=20)
    assert (result.steps, result.stopped) == (60, "done")  # ⌈10 / 4⌉ · 20
    found = rows(tmp_path)
    assert [row["step"] for row in found] == list(range(1, 61))
    assert {row["phase"] for row in found} == {"warm_start"}
    assert found[0]["update/loss"] > 2.5  # ln 19 = 2.94
    assert found[-1]["update/loss"] < 0.1
    assert found[-1]["update/epoch"] == 20


def test_a_stopped_warm_start_continues_with_the_identical_rows(tmp_path: Path) -> None:
    _, whole = run(tmp_path / "whole", gold())
    first, _ = run(tmp_path / "cut", gold(), stop=lambda: len(rows(tmp_path / "cut")) >= 5)
    assert (first.steps, first.stopped) == (5, "interrupted")
    second, resumed = run(tmp_path / "cut", gold(), seed=1)
    assert second.steps == 9
    assert timeless(tmp_path / "cut") == timeless(tmp_path / "whole")
    assert torch.equal(weights(whole), weights(resumed))


def test_a_complete_one_only_gives_its_weights_back(tmp_path: Path) -> None:
    _, whole = run(tmp_path, gold())
    result, again = run(tmp_path, gold(), seed=1)
    assert (result.steps, result.figures) == (9, {})
    assert torch.equal(weights(whole), weights(again))
    assert len(list((tmp_path / "checkpoints" / "warm_start").iterdir())) == 1


def test_no_epochs_change_nothing(tmp_path: Path) -> None:
    result, policy = run(tmp_path, gold(), warm_start_epochs=0)
    assert (result.steps, result.stopped) == (0, "done")
    assert torch.equal(weights(toy.new_learner()[0]), weights(policy))


def test_empty_and_faulted_demonstrations_are_left_out(tmp_path: Path) -> None:
    empty = Trajectory(
        Question("e", "x", ("y",)), (Segment("prompt", "p", (1, 2)), Segment("policy", "", ()))
    )
    faulted = replace(gold(1)[0], fault="retriever down")
    with pytest.raises(TrainingError, match="no demonstrations"):
        run(tmp_path, [])
    with pytest.raises(TrainingError, match="no demonstrations"):
        run(tmp_path, [empty, faulted])
    result, _ = run(tmp_path, [empty, *gold(3), faulted], warm_start_epochs=1)
    assert result.steps == 1


def test_other_demonstrations_do_not_continue_a_run(tmp_path: Path) -> None:
    run(tmp_path, gold())
    with pytest.raises(TrainingError, match="demonstrations"):
        run(tmp_path, gold(9) + gold(1))


def test_the_epoch_with_the_largest_share_is_kept(tmp_path: Path) -> None:
    shares = iter([0.2, 0.6, 0.4])
    _, kept = run(tmp_path / "probed", gold(), choice=Choice("headroom/mixed", lambda: next(shares)))
    _, whole = run(tmp_path / "whole", gold())
    assert not torch.equal(weights(kept), weights(whole))
    probed = [
        (row["step"], row["headroom/mixed"]) for row in rows(tmp_path / "probed") if "headroom/mixed" in row
    ]
    assert probed == [(3, 0.2), (6, 0.6), (9, 0.4)]
    second_epoch: list[torch.Tensor] = []
    policy, _ = toy.new_learner()
    scale = replace(toy.PLAN, warm_start_epochs=3, warm_start_batch=4, warm_start_lr=1e-2)
    with RunLog(tmp_path / "looked", console=toy.quiet()) as log:
        warm_start(
            policy,
            gold(),
            scale,
            log,
            choice=Choice("x", lambda: second_epoch.append(weights(policy)) or 0.0),  # type: ignore[func-returns-value]
        )
    assert torch.equal(weights(kept), second_epoch[1])


def test_a_resumed_warm_start_keeps_the_same_epoch(tmp_path: Path) -> None:
    shares = {3: 0.6, 6: 0.2, 9: 0.4}

    def share() -> float:
        return shares[len(rows(tmp_path)) + 1]

    run(tmp_path, gold(), choice=Choice("x", share), stop=lambda: len(rows(tmp_path)) >= 5)
    _, resumed = run(tmp_path, gold(), choice=Choice("x", share))
    _, again = run(tmp_path, gold(), choice=Choice("x", lambda: pytest.fail("measured again")))
    _, first = run(tmp_path / "first", gold(), choice=Choice("x", iter([0.6, 0.2, 0.4]).__next__))
    assert torch.equal(weights(resumed), weights(first))
    assert torch.equal(weights(again), weights(first))


@pytest.mark.parametrize("fails_at", [6, 9])
def test_a_measurement_that_failed_is_made_up_for(tmp_path: Path, fails_at: int) -> None:
    """The update was saved: without its measurement, the last weights would be kept unseen, or a better epoch lost."""
    shares = {3: 0.6, 6: 0.9, 9: 0.4} if fails_at == 6 else {3: 0.6, 6: 0.2, 9: 0.9}

    def measures(*updates: int) -> Choice:
        left = iter(updates)
        return Choice("x", lambda: shares[next(left)])

    def fails() -> float:
        number = len(rows(tmp_path / "cut")) + 1
        if number == fails_at:
            raise EngineError("the engine fails")
        return shares[number]

    _, whole = run(tmp_path / "whole", gold(), choice=measures(3, 6, 9))
    with pytest.raises(EngineError, match="the engine fails"):
        run(tmp_path / "cut", gold(), choice=Choice("x", fails))
    result, resumed = run(tmp_path / "cut", gold(), choice=measures(*range(fails_at, 10, 3)))
    assert (result.steps, result.stopped) == (9, "done")
    assert torch.equal(weights(resumed), weights(whole))
    best = BestCheckpoint(tmp_path / "cut" / "checkpoints" / "warm_start" / "best", patience=0)
    assert best.scores == shares


def test_dev_questions_choose_among_updates_and_the_last_counts(tmp_path: Path) -> None:
    values = iter([0.1, 0.5, 0.5])
    run(tmp_path, gold(), choice=Choice("dev/em", lambda: next(values), every=4))
    measured = [(row["step"], row["dev/em"]) for row in rows(tmp_path) if "dev/em" in row]
    assert measured == [(4, 0.1), (8, 0.5), (9, 0.5)]
    best = BestCheckpoint(tmp_path / "checkpoints" / "warm_start" / "best", patience=0)
    assert best.step == 8
