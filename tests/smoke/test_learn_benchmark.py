"""benchmarks/learn.py with a tiny model: every arm runs as a script does, and settings are what was trained with."""

import json
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from sleuth.engines.base import Engine
from sleuth.errors import ConfigError, JudgeError, RewardError
from sleuth.experiment import Experiment
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.registry import user_module
from sleuth.rewards import REWARDS
from sleuth.rewards.base import score_all
from sleuth.storage import write_json
from sleuth.training.loop import Parts
from sleuth.types import Trajectory
from support import toy
from support.runs import GOLD, episode
from support.towns import small

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "learn.py"
Learn = Callable[..., dict[str, Any]]


@pytest.fixture(autouse=True)
def undone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the script stays in this process."""
    monkeypatch.syspath_prepend(SCRIPT.parent)
    monkeypatch.setitem(REWARDS, "permuted", "")


@pytest.fixture
def learn() -> Iterator[ModuleType]:
    """The script as a module."""
    module = user_module(SCRIPT, "benchmark")
    yield module
    del sys.modules[module.__name__]


@pytest.fixture
def script(towns: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Learn:
    """Runs the script on the towns in the current folder; returns its report."""
    monkeypatch.chdir(towns)
    monkeypatch.setattr(Experiment, "forecast", lambda _: "")  # takes longer than all else
    sizes = {"warm_start_examples": 4, "engine": "transformers", "steps": 1}
    recipe = small(load_recipe("search-r1/cpu"), tiny_model, towns, **sizes)
    write_json(towns / "towns.json", recipe.to_dict())
    fixed = ["towns.json", "--index", "index", "--data", f"jsonl:{towns / 'dev.jsonl'}", "--questions", "2"]

    def run(*arguments: str) -> dict[str, Any]:
        command = [str(SCRIPT), *fixed, "--sampled", "0", "--json", ".", *arguments]
        monkeypatch.setattr(sys, "argv", command)
        runpy.run_path(str(SCRIPT), run_name="__main__")
        return report(towns)

    return run


def report(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "towns.json-0.json").read_text())
    return found


def test_the_permuted_arm_runs_and_finished_arms_are_reported_at_once(
    script: Learn, towns: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reinforce, taught = Experiment.reinforce, list[Parts]()

    def fails(self: Experiment) -> Any:
        taught.append(self._parts())
        if self.folder.name == "permuted":
            raise ConfigError("the second arm fails")
        return reinforce(self)

    with monkeypatch.context() as patched:
        patched.setattr(Experiment, "reinforce", fails)
        with pytest.raises(SystemExit, match="the second arm fails"):
            script("--runs", "runs", "--arms", "permuted")
    assert report(towns)["arms"].keys() == {"warm-start"}
    assert [type(parts.reward).__name__ for parts in taught] == ["AnswerReward", "Permuted"]
    whole = script("--runs", "runs", "--arms", "permuted")
    assert whole["arms"].keys() == {"warm-start", "permuted"}
    assert len(whole["arms"]["permuted"]["curve"]) == 1
    saved = json.loads((towns / "runs" / "towns.json-0" / "permuted" / "recipe.json").read_text())
    assert saved["reward"]["type"] == "rewards/permuted"

    # Finished arms are only read, wherever they are, but not as if other settings had made them.
    (towns / "runs").rename(towns / "moved")
    assert script("--runs", "moved", "--arms", "permuted")["arms"] == whole["arms"]
    with pytest.raises(SystemExit, match=r"permuted was trained with other scale\.lr: remove it"):
        script("--runs", "moved", "--arms", "permuted", "--set", "scale.lr=0.5")
    assert not (towns / "moved" / "towns.json-0" / "method").exists()


@pytest.fixture
def trained(tmp_path: Path) -> Callable[[str, Recipe], Path]:
    """Makes the folder of a finished arm."""

    def make(arm: str, recipe: Recipe) -> Path:
        (tmp_path / arm / "model").mkdir(parents=True)
        write_json(tmp_path / arm / "recipe.json", recipe.to_dict())
        return tmp_path / arm

    return make


BASE = load_recipe("eval-rar/cpu")


@pytest.mark.parametrize(
    ("arm", "changed", "names"),
    [
        (
            "method",
            BASE.sized(model="moved", eval_data="factbook:dev", eval_questions=9, rollout_batch=1),
            "",
        ),
        ("method", BASE.sized(steps=3, lr=0.5), r"scale\.lr, scale\.steps"),
        ("method", BASE.with_settings(["reward.bonus=0.3"]), r"reward\.bonus"),
        ("method", BASE.with_settings(["reward=answer"]), r"reward\.bonus, .*reward\.type"),
        ("warm-start", BASE.sized(model="other"), r"scale\.model"),
        ("warm-start", BASE.sized(warm_start_lr=0.5), r"scale\.warm_start_lr"),
        ("warm-start", BASE.sized(lr=0.5, batch=3).with_settings(["reward.bonus=0.3"]), ""),
        ("warm-start", BASE.with_settings(["algorithm.group_size=3"]), ""),
    ],
)
def test_a_finished_model_is_not_taken_for_one_of_other_settings(
    learn: ModuleType, trained: Callable[[str, Recipe], Path], arm: str, changed: Recipe, names: str
) -> None:
    folder = trained(arm, BASE)
    if not names:
        learn.check_finished(folder, changed)
        return
    with pytest.raises(ConfigError, match=f"{arm} was trained with other {names}: remove"):
        learn.check_finished(folder, changed)


def test_a_warm_start_that_is_probed_depends_on_the_groups(
    learn: ModuleType, trained: Callable[[str, Recipe], Path]
) -> None:
    probed = BASE.sized(warm_start_probe=4)
    folder = trained("warm-start", probed)
    learn.check_finished(folder, probed.with_settings(["reward.bonus=0.3"]))
    with pytest.raises(ConfigError, match=r"algorithm\.group_size"):
        learn.check_finished(folder, probed.with_settings(["algorithm.group_size=3"]))
    with pytest.raises(ConfigError, match=r"scale\.temperature"):
        learn.check_finished(folder, probed.sized(temperature=0.3))


def test_an_arm_that_is_not_finished_may_continue_with_other_settings(
    learn: ModuleType, trained: Callable[[str, Recipe], Path]
) -> None:
    folder = trained("method", BASE)
    (folder / "model").rmdir()
    learn.check_finished(folder, BASE.sized(steps=3))


def test_a_permuted_reward_has_the_stages_and_needs_of_the_other(learn: ModuleType) -> None:
    evo = load_recipe("evo-rag/cpu")
    permuted = learn.permuted(evo)
    assert permuted.reward.reads_gold
    assert permuted.all_steps == evo.all_steps == 2 * evo.scale.steps
    assert [stage.reward for stage in permuted.reward.stages()] == evo.reward.stages()
    with pytest.raises(ConfigError, match="the curriculum counts"):
        permuted.reward.check(evo.scale.__class__("m", "t", "e", max_steps=9))
    assert Recipe.from_dict(permuted.to_dict()) == permuted


EPISODES = [episode(GOLD, str(i), 0.0, sample=i) for i in range(6)]


class Judged(toy.FirstLetter):
    """The answer, a number, is the reward; a batch fails, and one episode too."""

    def score(self, trajectories: Any, engine: Engine | None = None) -> Any:
        if len(trajectories) > 1 or trajectories[0].answer == "5":
            raise JudgeError("no verdict")
        return super().score(trajectories, engine)


def answer(trajectory: Trajectory) -> float:
    return float(trajectory.answer or "nan")


def test_rewards_are_permuted_even_where_a_batch_is_scored_one_by_one(learn: ModuleType) -> None:
    scores = score_all(learn.Permuted(Judged(value=answer)), EPISODES, None)
    totals = [-1.0 if score.invalid else score.total for score in scores]
    assert sorted(totals) == [-1, 0, 1, 2, 3, 4]
    assert totals != [0, 1, 2, 3, 4, -1]


def test_a_single_episode_never_gets_its_own_reward(learn: ModuleType) -> None:
    reward = learn.Permuted(toy.FirstLetter(value=answer))
    with pytest.raises(RewardError, match="single episode"):
        reward.score(EPISODES[:1])
    (score,) = score_all(reward, EPISODES[:1], None)
    assert score.invalid
