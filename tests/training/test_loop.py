"""The loop on a toy it must learn, on input that must not train, and on runs that are killed."""

import itertools
import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from sleuth.algorithms.grpo import GRPO
from sleuth.algorithms.pairwise import AnswerDPO
from sleuth.engines.base import Completion, Engine, Sampling
from sleuth.engines.transformers import TransformersEngine
from sleuth.errors import ConfigError, EngineError, RetrievalError, RewardError, TrainingError
from sleuth.retrievers.base import Retriever
from sleuth.rewards.base import Reward
from sleuth.rollouts.store import TrajectoryReader
from sleuth.training import guards
from sleuth.training.questions.pool import PRIOR, guess_chance, is_mixed
from sleuth.training.runs import phase
from sleuth.training.runs.checkpoint import latest_checkpoint
from sleuth.types import Exchange, Hit, Question, Score, Trajectory
from support import toy
from support.toy import quiet, rows, shown, timeless, weights

ON_POLICY = GRPO(group_size=4, beta=0.0)


@pytest.fixture(autouse=True)
def _one_thread(one_thread: None) -> None:
    """Bitwise equal sums need a fixed split of the work."""


def test_bfloat16_training_reproduces_itself_and_keeps_the_ratio_at_one(tmp_path: Path) -> None:
    setup = toy.parts(GRPO(group_size=4, beta=0.01, num_updates=1))
    for name in ("a", "b"):
        toy.run(tmp_path / name, setup=setup, learner=toy.new_learner(precision="bfloat16"), steps=3)
    found = timeless(tmp_path / "a")
    assert timeless(tmp_path / "b") == found
    assert all(row["update/ratio"] == pytest.approx(1.0, abs=1e-3) for row in found)


def test_the_row_of_a_step_holds_the_guards(tmp_path: Path) -> None:
    result = toy.run(tmp_path, steps=2, eval_every=1, evaluate=lambda step: {"evaluation/em": step / 10})
    assert (result.steps, result.stopped) == (2, "done")
    row = rows(tmp_path)[1]
    assert row["evaluation/em"] == 0.2
    assert row["rollouts/episodes"] == 12
    guards = {
        "reward": "total total_se letter letter_se zero_variance",
        "rollouts": "valid_format searches response_length faults",
        "update": "loss kl clip_fraction entropy grad_norm lr",
        "time": "rollout_s reward_s update_s step_s",
    }
    for group, names in guards.items():
        assert all(isinstance(row[f"{group}/{name}"], int | float) for name in names.split())


def test_two_runs_are_bitwise_the_same_and_a_seed_changes_them(tmp_path: Path) -> None:
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        toy.run(tmp_path / name, steps=2, seed=seed)
    kept = list(TrajectoryReader(tmp_path / "a" / "rollouts" / "step-000001.jsonl"))
    assert [t.sample for t in kept] == [0, 1, 2, 3] * 3
    assert all(t.score is not None for t in kept)
    a, b, c = (timeless(tmp_path / name) for name in "abc")
    assert a == b
    assert a != c


def test_a_repeated_question_is_sampled_again(tmp_path: Path) -> None:
    toy.run(tmp_path, setup=toy.parts(ON_POLICY, questions=toy.QUESTIONS[:1]), steps=2, lr=0.0)
    first, second = (
        [t.tokens for t in TrajectoryReader(tmp_path / "rollouts" / f"step-00000{step}.jsonl")]
        for step in (1, 2)
    )
    assert first != second
    assert len({tuple(tokens) for tokens in first + second}) > 4


def test_the_engine_forgets_old_weights_after_every_update(tmp_path: Path) -> None:
    policy, engine = toy.new_learner()
    engine.generate([], Sampling())  # opens the lanes
    events: list[str] = []
    sample, clear = engine.sample, engine._lanes.clear
    engine.sample = lambda *a: events.append("sample") or sample(*a)
    engine._lanes.clear = lambda: events.append("clear") or clear()
    toy.run(tmp_path, steps=3, learner=(policy, engine))
    kinds = [kind for kind, _ in itertools.groupby(events)]
    assert kinds == ["clear", *["sample", "clear"] * 3]


def test_kl_measures_the_way_from_where_training_began(tmp_path: Path) -> None:
    toy.run(tmp_path, setup=toy.parts(GRPO(group_size=4, beta=0.001)), steps=4, lr=1e-2)
    kl = [abs(row["update/kl"]) for row in rows(tmp_path)]
    assert kl[0] < 1e-6
    assert max(kl[1:]) > 1e-3
    # the estimators of the loss and of ARENA's Figure 4
    for name in ("update/kl_k2", "update/kl_k3"):
        values = [row[name] for row in rows(tmp_path)]
        assert values[0] < 1e-6 < max(values[1:])


def test_a_step_that_was_given_up_leaves_no_trace(tmp_path: Path) -> None:
    drawn: list[float] = []

    def value(_: Trajectory) -> float:
        drawn.append(random.random())
        return drawn[-1]

    def run(name: str, **options: Any) -> Any:
        return toy.run(tmp_path / name, setup=toy.parts(ON_POLICY, toy.FirstLetter(value=value)), **options)

    random.seed(0)
    run("whole")
    drawn.clear()
    random.seed(0)
    # Asked after the rewards of step 3, before its update.
    policy, engine = toy.new_learner()
    assert run("cut", stop=lambda: len(drawn) >= 36, learner=(policy, engine)).steps == 2
    assert all(parameter.grad is None for parameter in policy.trainable_parameters())
    random.seed(1)
    assert run("cut").steps == 6
    assert timeless(tmp_path / "cut") == timeless(tmp_path / "whole")


@pytest.mark.parametrize("kind", ["interrupted", "deadline"])
def test_a_stopped_run_continues_with_the_identical_rows(tmp_path: Path, kind: str) -> None:
    toy.run(tmp_path / "whole")
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 40  # in the middle of a step's rollouts

    console = quiet()
    options: dict[str, Any] = {"stop": stop}
    if kind == "deadline":
        # One step of 0.7 s fits into 1 s, a second one as long would not.
        options = {"deadline_s": 1.0, "eval_every": 1, "evaluate": lambda _: time.sleep(0.7) or {}}
    first = toy.run(tmp_path / "cut", console=console, **options)
    assert first.stopped == kind
    assert first.steps < 6
    assert f"{kind} after step {first.steps} of 6; the same command continues" in shown(console)
    # Another random model: everything that matters must come from the checkpoint.
    second = toy.run(tmp_path / "cut", learner=toy.new_learner(1 if first.steps else 0))
    assert (second.steps, second.stopped) == (6, "done")
    assert timeless(tmp_path / "cut") == timeless(tmp_path / "whole")


POINTS = [
    "sleuth.algorithms.base:roll_out=4",
    "sleuth.training.loop:score_all=3",
    "sleuth.training.update.spend:accumulate_gradients=8",
    "sleuth.training.update.optimiser:Optimiser.step=6",
    "sleuth.training.runs.log:RunLog.write=3",
    "sleuth.training.runs.checkpoint:save_file=1",
    "sleuth.training.runs.checkpoint:save_file=6",
    "sleuth.training.runs.checkpoint:_sync=14",
    "sleuth.training.runs.checkpoint:_prune=3",
]
"""Where a run of six steps is killed; the last four are inside a checkpoint."""


@pytest.mark.slow
def test_a_run_killed_anywhere_continues_with_the_identical_losses(tmp_path: Path) -> None:
    script = str(toy.__file__)
    finished = subprocess.run(
        [sys.executable, script, str(tmp_path), "6", *POINTS],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert finished.stdout.splitlines() == [f"{-signal.SIGKILL} 0"] * len(POINTS), finished.stderr
    expected = timeless(tmp_path / "whole")
    assert len({row["update/loss"] for row in expected}) == 6
    for i, point in enumerate(POINTS):
        assert timeless(tmp_path / str(i)) == expected, point


@pytest.mark.slow
def test_sigterm_saves_and_ends_cleanly(tmp_path: Path) -> None:
    script = str(toy.__file__)
    process = subprocess.Popen(
        [sys.executable, script, str(tmp_path), "100000"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr.readline().startswith("train 1/")
    process.send_signal(signal.SIGTERM)
    lines = process.communicate(timeout=60)[1].splitlines()
    assert process.returncode == 0
    last = rows(tmp_path)[-1]["step"]
    assert lines[-1] == f"interrupted after step {last} of 100000; the same command continues from there"
    assert (tmp_path / "checkpoints" / "train" / f"step-{last:06d}" / "manifest.json").is_file()


def test_a_run_that_is_done_is_not_done_again_and_its_folder_takes_no_other(tmp_path: Path) -> None:
    toy.run(tmp_path, steps=2)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    again = toy.run(tmp_path, steps=2, learner=toy.new_learner(3))
    assert (again.steps, again.stopped, again.figures) == (2, "done", {})
    with pytest.raises(TrainingError, match="batch 3, not 2"):
        toy.run(tmp_path, steps=2, batch=2)
    follow_ups = [replace(q, history=(Exchange("?", "a"),)) for q in toy.QUESTIONS]
    for others in (toy.QUESTIONS[:5], follow_ups):
        with pytest.raises(TrainingError, match="questions"):
            toy.run(tmp_path, steps=2, setup=toy.parts(questions=others))
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_frozen_weights_of_another_model_are_refused(tmp_path: Path) -> None:
    for seed in (0, 3):
        policy, engine = toy.new_learner(seed)
        policy.freeze_layers(0.5)
        if seed:
            with pytest.raises(TrainingError, match="frozen weights"):
                toy.run(tmp_path, steps=3, learner=(policy, engine))
        else:
            toy.run(tmp_path, steps=2, learner=(policy, engine))


def test_a_change_of_the_reward_is_logged(tmp_path: Path) -> None:
    toy.run(tmp_path, steps=2, setup=toy.parts(reward=toy.FirstLetter("a")))
    console = quiet()
    toy.run(tmp_path, steps=3, setup=toy.parts(reward=toy.FirstLetter("b")), console=console)
    assert "train: continues with other settings of the reward than before" in shown(console)


def test_all_equal_rewards_make_no_step(tmp_path: Path) -> None:
    console = quiet()
    reward = toy.FirstLetter(value=lambda _: 0.5)
    policy, engine = toy.new_learner()
    before = weights(policy)
    learner = policy, engine
    toy.run(tmp_path / "a", setup=toy.parts(ON_POLICY, reward), steps=2, console=console, learner=learner)
    assert torch.equal(before, weights(policy))
    made = [(row["update/made"], row["reward/zero_variance"]) for row in rows(tmp_path / "a")]
    assert made == [(0, 1), (0, 1)]
    assert "step 1: no update: " in shown(console)
    # A penalty towards the reference policy remains.
    toy.run(tmp_path / "b", setup=toy.parts(GRPO(group_size=4, beta=0.1), reward), steps=1)
    assert rows(tmp_path / "b")[0]["update/made"] == 1


@pytest.mark.parametrize(("size", "max_context"), [(1, 32), (4, 3)])
def test_groups_of_one_and_empty_completions_make_no_step(
    tmp_path: Path, size: int, max_context: int
) -> None:
    setup = toy.parts(GRPO(group_size=size, beta=0.0))
    result = toy.run(tmp_path, setup=setup, steps=1, max_context=max_context)
    assert result.figures["update/made"] == 0
    assert (result.figures["rollouts/response_length"] == 0) == (max_context == 3)


def test_nan_rewards_are_left_out_and_never_train(tmp_path: Path) -> None:
    console = quiet()
    reward = toy.FirstLetter(value=lambda t: math.nan if t.sample == 1 else float(t.sample))
    result = toy.run(tmp_path, setup=toy.parts(ON_POLICY, reward), steps=2, console=console)
    assert result.figures["rollouts/invalid"] == 3
    assert result.figures["reward/total"] == pytest.approx(5 / 3)
    assert math.isfinite(result.figures["update/loss"])
    assert "step 1: 3 of 12 episodes left out, the first: the reward is nan" in shown(console)


def test_nothing_but_nan_ends_the_run_with_its_weights_saved(tmp_path: Path) -> None:
    policy, engine = toy.new_learner()
    before = weights(policy)
    setup = toy.parts(ON_POLICY, toy.FirstLetter(value=lambda _: math.nan))
    with pytest.raises(TrainingError, match=r"3 steps in a row gave no usable episode.*nan"):
        toy.run(tmp_path, setup=setup, save_every=0, learner=(policy, engine))
    assert torch.equal(before, weights(policy))
    assert (tmp_path / "checkpoints" / "train" / "step-000002" / "manifest.json").is_file()


class Failing(Reward):
    """Fails whenever a batch holds sample 2."""

    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        if any(t.sample == 2 for t in trajectories):
            raise RewardError("will not score sample 2")
        return [Score(float(t.sample), {}) for t in trajectories]


def test_a_reward_that_fails_costs_only_the_sample(tmp_path: Path) -> None:
    result = toy.run(tmp_path, setup=toy.parts(ON_POLICY, Failing()), steps=1)
    assert result.figures["rollouts/invalid"] == 3
    assert result.figures["reward/total"] == pytest.approx(4 / 3)


class Dead(Retriever):
    """A server that is down."""

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        raise RetrievalError("connection refused")


def test_a_dead_retriever_is_never_scored(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class FirstSearch(toy.Letters):
        retrieves_first = True

    plain = toy.parts(ON_POLICY, toy.FirstLetter())
    setup = replace(plain, world=replace(plain.world, protocol=FirstSearch(), retriever=Dead()))
    with pytest.raises(TrainingError, match="connection refused"):
        toy.run(tmp_path, setup=setup)
    assert [row["rollouts/faults"] for row in rows(tmp_path)] == [12, 12]


def test_a_gradient_that_is_not_finite_is_dropped(tmp_path: Path) -> None:
    class Exploding(GRPO):
        def loss(self, batch: Any, normaliser: float) -> Any:
            loss = super().loss(batch, normaliser)
            return type(loss)(loss.value * math.inf, loss.metrics)

    policy, engine = toy.new_learner()
    before = weights(policy)
    console = quiet()
    setup = toy.parts(Exploding(group_size=4, beta=0.0), toy.FirstLetter(value=lambda t: float(t.sample)))
    result = toy.run(tmp_path, setup=setup, steps=2, console=console, learner=(policy, engine))
    assert torch.equal(before, weights(policy))
    assert result.figures["update/dropped"] == 1
    assert "step 1: update dropped" in shown(console)


def test_settings_that_cannot_train_are_refused_first(tmp_path: Path) -> None:
    with pytest.raises(TrainingError, match="no questions"):
        toy.run(tmp_path, setup=toy.parts(questions=[]))
    with pytest.raises(TrainingError, match="temperature above 0"):
        toy.run(tmp_path, temperature=0.0)
    with pytest.raises(ConfigError, match="lr_schedule must be one of constant, linear, cosine"):
        toy.run(tmp_path, lr_schedule="cosin")
    assert not (tmp_path / "checkpoints").exists()


def test_an_evaluation_that_fails_loses_no_step(tmp_path: Path) -> None:
    def evaluate(step: int) -> dict[str, float]:
        raise RetrievalError("index gone")

    with pytest.raises(RetrievalError):
        toy.run(tmp_path, steps=3, save_every=0, evaluate=evaluate)
    assert len(rows(tmp_path)) == 3
    assert toy.run(tmp_path, steps=3).steps == 3


def test_a_collapse_stops_the_run_and_restores_the_best_weights(tmp_path: Path) -> None:
    console, setup = quiet(), toy.parts(ON_POLICY)
    plan = {"lr": 1.0, "lr_schedule": "constant", "lr_warmup": 0.0, "steps": 30, "save_every": 1}
    result = toy.run(tmp_path / "guarded", setup=setup, console=console, **plan)
    assert (result.stopped, result.steps < 30) == ("collapsed", True)
    lines = shown(console)
    for expected in ("stopped at step", "update/kl_start", "the best weights are those of step"):
        assert expected in lines
    again = toy.run(tmp_path / "guarded", setup=setup, **plan)
    assert (again.stopped, again.steps) == ("collapsed", result.steps)
    unguarded = plan | {"steps": result.steps + 1, "save_every": 0, "guards": False}
    assert toy.run(tmp_path / "unguarded", setup=setup, **unguarded).stopped == "done"


def test_patience_without_dev_questions_ends_no_continued_run(tmp_path: Path) -> None:
    setup = toy.parts(ON_POLICY, toy.FirstLetter(value=lambda t: float(t.sample)))
    plan = {"patience": 1, "save_every": 1, "lr": 1e-4}
    asked = iter([False] * 60 + [True] * 1000)
    assert toy.run(tmp_path, setup=setup, stop=lambda: next(asked), **plan).stopped == "interrupted"
    assert toy.run(tmp_path, setup=setup, **plan).steps == toy.PLAN.steps


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [(0, 6, "without a pool"), (6, 0, "with a pool"), (6, 9, "6 candidates, not 9")],
)
def test_a_run_with_other_candidates_is_not_continued(
    tmp_path: Path, before: int, after: int, reason: str
) -> None:
    toy.run(tmp_path, setup=toy.parts(ON_POLICY), steps=1, candidates=before)
    with pytest.raises(TrainingError, match=reason):
        toy.run(tmp_path, setup=toy.parts(ON_POLICY), steps=2, candidates=after)


def test_a_step_whose_dev_evaluation_failed_may_still_be_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dev_em(*_: Any) -> float:
        if (score := next(scores)) is None:
            raise EngineError("gone")
        return score

    scores = iter([0.1, 0.2, None, 0.3])
    monkeypatch.setattr("sleuth.training.loop.dev_em", dev_em)
    console, plan = quiet(), {"steps": 2, "dev_questions": 3}
    with pytest.raises(EngineError):
        toy.run(tmp_path, setup=toy.parts(ON_POLICY), **plan)
    toy.run(tmp_path, setup=toy.parts(ON_POLICY), console=console, **plan)
    assert "the best weights are those of step 2" in shown(console)


class Scripted(toy.Letters):
    """Its script answers at once."""

    def demonstrate(self, question: Question, shown: Sequence[Any]) -> str:
        return question.answers[0]


def test_scripted_episodes_are_no_drift(tmp_path: Path) -> None:
    setup = toy.parts(AnswerDPO(), questions=[replace(q, rejected=("b",)) for q in toy.QUESTIONS])
    setup = replace(setup, world=replace(setup.world, protocol=Scripted()))
    plan = {"lr": 1e-4, "lr_schedule": "constant", "lr_warmup": 0.0, "steps": 7}
    assert toy.run(tmp_path, setup=setup, **plan).stopped == "done"


def test_a_request_to_stop_in_the_step_of_a_collapse_is_one(tmp_path: Path) -> None:
    console = quiet()
    plan = {"lr": 1.0, "lr_schedule": "constant", "lr_warmup": 0.0, "steps": 30, "save_every": 1}
    options = {"setup": toy.parts(ON_POLICY), "console": console, **plan}
    result = toy.run(tmp_path, stop=lambda: "stopped at step" in shown(console), **options)
    assert result.stopped == "interrupted"
    assert toy.run(tmp_path, **options).stopped == "collapsed"


def test_the_guards_of_a_killed_run_count_no_step_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(phase, "SAVE_SHARE", 1.0)

    def killed(step: int) -> dict[str, float]:
        if step == 6:  # its row is written, its checkpoint is not
            raise SystemExit
        return {}

    plan = {"steps": 8, "save_every": 2}
    toy.run(tmp_path / "whole", **plan)
    with pytest.raises(SystemExit):
        toy.run(tmp_path / "cut", eval_every=1, evaluate=killed, **plan)
    toy.run(tmp_path / "cut", **plan)
    scores = [tmp_path / name / "checkpoints" / "train" / "best" / "scores.json" for name in ("cut", "whole")]
    assert json.loads(scores[0].read_text()) == json.loads(scores[1].read_text())


def test_a_pool_measures_draws_and_refills(tmp_path: Path) -> None:
    plan = {"candidates": 6, "refill": 2.0, "steps": 3, "save_every": 1}
    setup = toy.parts(replace(ON_POLICY, drop_zero_variance=True), toy.FirstLetter("a"))
    console = quiet()
    toy.run(tmp_path, setup=setup, console=console, **plan)
    assert shown(console).startswith("train: playing 6 candidates before the first step\n")
    record = json.loads((tmp_path / "selection.json").read_text())
    assert (record["questions"], record["episodes"]) == (6, 6 * ON_POLICY.group_size)
    size = ON_POLICY.group_size
    live = (
        record["mixed"] if record["mixed"] >= 3 else record["live"]
    ) // 3  # steps whose experience was measured
    assert [row["rollouts/played"] == 0 for row in rows(tmp_path)] == [step < live for step in range(3)]
    assert all(3 * size <= row["rollouts/played"] <= 6 * size for row in rows(tmp_path)[live:])
    played = [t for file in (tmp_path / "rollouts").iterdir() for t in TrajectoryReader(file)]
    assert len({t.question.id for t in played}) <= 6 < len(setup.questions)


def test_a_pool_without_measurement_learns_from_the_steps(tmp_path: Path) -> None:
    plan = {"candidates": 6, "measure": False, "refill": 1.0, "steps": 3, "save_every": 1}
    setup = toy.parts(replace(ON_POLICY, drop_zero_variance=True), toy.FirstLetter("a"))
    console = quiet()
    toy.run(tmp_path, setup=setup, console=console, **plan)
    assert "candidates" not in shown(console)
    assert not (tmp_path / "selection.json").exists()
    assert all(row["rollouts/played"] >= 3 * ON_POLICY.group_size for row in rows(tmp_path))
    played = {t.question.id for file in (tmp_path / "rollouts").iterdir() for t in TrajectoryReader(file)}
    assert len(played) <= 6 < len(setup.questions)
    found = latest_checkpoint(tmp_path / "checkpoints" / "train")
    assert found is not None
    seen = [outcome != [PRIOR, 1.0] for outcome in found.tensors["pool"]["outcomes"].tolist()]
    assert sum(seen) >= len(played)


def test_a_run_killed_in_its_first_step_keeps_its_measured_candidates(tmp_path: Path) -> None:
    def killed(step: int) -> dict[str, float]:
        raise SystemExit

    setup = toy.parts(ON_POLICY, toy.FirstLetter("a"))
    plan: dict[str, Any] = {"setup": setup, "candidates": 6, "steps": 3}
    toy.run(tmp_path / "whole", **plan)
    with pytest.raises(SystemExit):
        toy.run(tmp_path / "cut", eval_every=1, evaluate=killed, **plan)
    console = quiet()
    toy.run(tmp_path / "cut", console=console, **plan)
    assert "candidates" not in shown(console)
    for cut, whole in zip(rows(tmp_path / "cut"), rows(tmp_path / "whole"), strict=True):
        for name in ("reward/total", "rollouts/played", "update/loss", "update/grad_norm"):
            assert cut.get(name) == whole.get(name)


def test_the_first_steps_spend_groups_with_right_and_wrong_answers(tmp_path: Path) -> None:
    # Every group has unequal rewards; the answer is right for some episodes of some.
    setup = toy.parts(replace(ON_POLICY, group_size=8), toy.FirstLetter(value=toy.lateness))
    letters = [replace(question, answers=("a", "b", "c", "d")) for question in setup.questions]
    toy.run(tmp_path, setup=replace(setup, questions=letters), candidates=24, steps=1, batch=2)
    record = json.loads((tmp_path / "selection.json").read_text())
    spent = list(TrajectoryReader(tmp_path / "rollouts" / "train-measured.jsonl"))
    assert len(spent) == 8 * record["mixed"]
    assert 2 <= record["mixed"] < record["live"]
    assert all(is_mixed(spent[i : i + 8]) for i in range(0, len(spent), 8))


def test_the_first_steps_spend_no_more_guessable_questions_than_their_share(tmp_path: Path) -> None:
    setup = toy.parts(replace(ON_POLICY, group_size=8), toy.FirstLetter(value=toy.lateness))
    letters = ("a", "b", "c", "d")
    questions = [
        replace(question, answers=letters if i % 3 else (*letters, "yes"))
        for i, question in enumerate(setup.questions)
    ]
    toy.run(tmp_path, setup=replace(setup, questions=questions), candidates=24, steps=1, batch=2)
    spent = [t.question for t in TrajectoryReader(tmp_path / "rollouts" / "train-measured.jsonl")][::8]
    kinds = [bool(guess_chance(question)) for question in spent]
    # A third of the questions counts half: 8 × 0.5 of 8 × 0.5 + 16 is a fifth.
    assert any(kinds)
    assert all(sum(kinds[:n]) <= 0.2 * n for n in range(1, len(kinds) + 1))


def test_the_rollouts_kept_of_a_step_are_not_its_first_groups_alone(tmp_path: Path) -> None:
    # Half of the questions are guessable, which a pool puts after others: the first two groups never are.
    setup = toy.parts(replace(ON_POLICY, group_size=8), toy.FirstLetter(value=toy.lateness))
    questions = [
        replace(question, answers=(*question.answers, "yes") if i % 2 else question.answers)
        for i, question in enumerate(setup.questions)
    ]
    plan = {"candidates": 24, "steps": 4, "batch": 6}
    toy.run(tmp_path, setup=replace(setup, questions=questions), **plan)
    kept = [t for path in (tmp_path / "rollouts").glob("step-*") for t in TrajectoryReader(path)]
    assert len(kept) == 4 * 16
    assert any(guess_chance(trajectory.question) for trajectory in kept)


def test_the_guards_see_the_policy_move_while_it_learns_from_measured_groups(tmp_path: Path) -> None:
    setup = toy.parts(ON_POLICY, toy.FirstLetter(value=toy.lateness))
    plan = {"lr": 0.05, "lr_schedule": "constant", "lr_warmup": 0.0, "steps": 4, "save_every": 1}
    toy.run(tmp_path, setup=setup, candidates=9, **plan)
    found = rows(tmp_path)
    assert [row["rollouts/played"] > 0 for row in found] == [False, False, False, True]
    assert all(abs(row["update/kl_start"]) > 0.01 for row in found)  # 0.0 for a policy that has not moved
    scores = dict(json.loads((tmp_path / "checkpoints" / "train" / "best" / "scores.json").read_text()))
    assert list(scores) == [0, 4]  # no step is scored by the episodes of the first weights
    assert scores[4] == found[3]["rollouts/right"]


def test_a_policy_that_pleases_its_reward_and_no_longer_answers_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "KL", math.inf)  # which a toy exceeds first
    answers = tuple("a" + letter for letter in ("", *toy.LETTERS))
    asked = [replace(question, answers=answers) for question in toy.QUESTIONS]
    plan = {"lr_schedule": "constant", "lr_warmup": 0.0, "save_every": 1, "batch": 12}
    learner, console = toy.new_learner(), quiet()
    right = toy.parts(ON_POLICY, toy.FirstLetter("a"), asked)
    toy.run(tmp_path / "right", setup=right, learner=learner, steps=8, lr=0.02, **plan)
    assert rows(tmp_path / "right")[-1]["rollouts/right"] > 0.8
    flawed = toy.parts(ON_POLICY, toy.FirstLetter(value=toy.lateness), asked)
    result = toy.run(
        tmp_path / "flawed", setup=flawed, learner=learner, console=console, steps=25, lr=0.003, **plan
    )
    assert result.stopped == "collapsed"
    assert "because rollouts/right is" in shown(console)
    found = rows(tmp_path / "flawed")
    assert found[-1]["reward/total"] > found[0]["reward/total"]
    assert "the best weights are those of step 0" in shown(console)  # the last ones have the highest rewards


def test_a_run_that_began_without_guards_has_weights_to_go_back_to(tmp_path: Path) -> None:
    plan = {"lr": 1.0, "lr_schedule": "constant", "lr_warmup": 0.0, "save_every": 0}
    setup, console = toy.parts(ON_POLICY), quiet()
    toy.run(tmp_path, setup=setup, steps=6, guards=False, **plan)
    result = toy.run(tmp_path, setup=setup, steps=12, console=console, **plan)
    assert (result.stopped, result.steps) == ("collapsed", 7)
    assert "the best weights are those of step 6" in shown(console)


def test_a_run_with_a_pool_resumes_exactly(tmp_path: Path) -> None:
    plan = {"candidates": 6, "steps": 4, "save_every": 2}
    setup = toy.parts(ON_POLICY)
    whole, cut = toy.new_learner(), toy.new_learner()
    toy.run(tmp_path / "whole", setup=setup, learner=whole, **plan)
    asked = iter([False] * 60 + [True] * 1000)
    toy.run(tmp_path / "cut", setup=setup, learner=toy.new_learner(), stop=lambda: next(asked), **plan)
    toy.run(tmp_path / "cut", setup=setup, learner=cut, **plan)
    assert torch.equal(weights(whole[0]), weights(cut[0]))


@pytest.mark.parametrize("calls", [60, 85])
def test_a_step_that_was_given_up_is_not_counted_in_the_pool(tmp_path: Path, calls: int) -> None:
    plan = {"candidates": 12, "refill": 2.0, "steps": 3, "save_every": 0}
    setup = toy.parts(replace(ON_POLICY, drop_zero_variance=True), toy.FirstLetter("a"))
    toy.run(tmp_path / "whole", setup=setup, **plan)
    asked = iter([False] * calls + [True] * 1000)  # while refilling step 1, and in a later step
    cut = toy.run(tmp_path / "cut", setup=setup, stop=lambda: next(asked), **plan)
    assert cut.stopped == "interrupted"
    toy.run(tmp_path / "cut", setup=setup, **plan)
    assert timeless(tmp_path / "cut") == timeless(tmp_path / "whole")


class Shifted(TransformersEngine):
    """Gives every sampled token half its probability, as if another implementation had computed it."""

    has_own_arithmetic = True

    async def sample(self, *arguments: Any) -> Completion:
        done = await super().sample(*arguments)
        return replace(done, logprobs=tuple(logprob - math.log(2) for logprob in done.logprobs))


@pytest.mark.parametrize("num_updates", [1, 2])
def test_the_gap_to_another_engine_is_logged_and_corrected(tmp_path: Path, num_updates: int) -> None:
    def trained(engine: type[TransformersEngine], most: float) -> tuple[dict[str, Any], torch.Tensor]:
        policy, own = toy.new_learner()
        learner = policy, engine(policy.model, own.tokenizer.hf)
        algorithm = GRPO(group_size=4, beta=0, num_updates=num_updates, engine_ratio_max=most)
        folder = tmp_path / f"{engine.__name__}-{most}"
        toy.run(folder, learner=learner, setup=toy.parts(algorithm), steps=1, guards=False)
        return toy.rows(folder)[0], toy.weights(policy)

    row, corrected = trained(Shifted, 1.5)
    assert row["rollouts/logprob_gap"] == pytest.approx(math.log(2), abs=1e-5)
    assert row["rollouts/logprob_gap_k1"] == pytest.approx(-math.log(2), abs=1e-5)
    plain, same = trained(TransformersEngine, 1.5)
    assert "rollouts/logprob_gap" not in plain
    unbounded, uncorrected = trained(Shifted, 0)
    assert torch.equal(same, uncorrected)
    assert row["update/grad_norm"] == pytest.approx(1.5 * unbounded["update/grad_norm"], rel=0.2)
    assert not torch.equal(corrected, uncorrected)


def test_refused_settings_need_no_model(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="a single episode"):
        toy.run(tmp_path, setup=toy.parts(replace(ON_POLICY, group_size=1)), candidates=4)


def test_a_run_without_steps_keeps_no_second_model(tmp_path: Path) -> None:
    assert (toy.run(tmp_path, steps=0).stopped, toy.run(tmp_path, steps=0).steps) == ("done", 0)
    assert not (tmp_path / "checkpoints").exists()


def test_fresh_questions_are_refilled_too(tmp_path: Path) -> None:
    setup = toy.parts(replace(ON_POLICY, drop_zero_variance=True), toy.FirstLetter("no such letter"))
    with pytest.raises(StopIteration):  # every group is dead: the first step plays all it may
        toy.run(tmp_path, setup=setup, steps=1, batch=2, refill=1.0, evaluate=_stop, eval_every=1)
    assert rows(tmp_path)[0]["rollouts/episodes"] == 4 * ON_POLICY.group_size


def _stop(step: int) -> dict[str, float]:
    raise StopIteration


def test_a_part_that_is_nan_can_be_stored_and_read_again(tmp_path: Path) -> None:
    class Broken(toy.FirstLetter):
        def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
            scores = super().score(trajectories, engine)
            return [replace(s, parts={"part": math.nan}) if i == 0 else s for i, s in enumerate(scores)]

    setup = toy.parts(ON_POLICY, Broken(value=toy.lateness))
    assert toy.run(tmp_path, setup=setup, steps=2, candidates=6).stopped == "done"


def test_a_batch_that_the_script_cannot_show_is_left_out(tmp_path: Path) -> None:
    class Picky(Scripted):
        def demonstrate(self, question: Question, shown: Sequence[Any]) -> str:
            return "" if question.id == toy.QUESTIONS[0].id else question.answers[0]

    asked = [replace(q, rejected=("b",)) for q in toy.QUESTIONS[:3]]
    setup = toy.parts(AnswerDPO(), questions=asked)
    setup = replace(setup, world=replace(setup.world, protocol=Picky()))
    plan = {"lr": 1e-4, "lr_schedule": "constant", "lr_warmup": 0.0, "steps": 6, "batch": 1}
    assert toy.run(tmp_path, setup=setup, **plan).stopped == "done"
    setup = replace(setup, questions=asked[:1])
    with pytest.raises(TrainingError, match="no usable episode; step 3: 0 of 0 episodes"):
        toy.run(tmp_path / "none", setup=setup, **plan)
