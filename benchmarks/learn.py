"""Does training make a model better? One method, one seed: a warm start and three ways to continue it.

    python benchmarks/learn.py eval-rar/cpu --seed 0 --runs runs/learn --json results/learn

The warm start imitates a fixed, small number of scripted demonstrations. Three arms start from its weights: the
method itself, rejection sampling of right answers, and the method on rewards that were permuted
within each step, which must not gain. All are evaluated greedily on the same held-out questions, and
sampled on some of them. Everything is resumed: finished parts are only read again, if they were trained with
the same settings. The JSON is written after each arm. It names the command, the seed, the commit and the
packages' versions. `--processes 2` trains in two processes, one thread each; the rest runs in one.
"""

import argparse
import gc
import json
import os
import random
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from parts import commit

from sleuth.algorithms.rejection import RejectionSampling
from sleuth.datasets.factbook import SHARES
from sleuth.engines.base import Engine, Sampling
from sleuth.errors import ConfigError, RankError, RewardError, SleuthError
from sleuth.evaluation.headroom import measure_headroom, read_rates
from sleuth.evaluation.provenance import RECIPE
from sleuth.evaluation.records import read_records
from sleuth.evaluation.result import QUESTIONS, Evaluation
from sleuth.evaluation.settings import differing, versions
from sleuth.evaluation.statistics import bootstrap_mean, paired_difference
from sleuth.experiment import Experiment
from sleuth.memory import give_back
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.rewards import REWARDS
from sleuth.rewards.answer import AnswerReward
from sleuth.rewards.base import Reward, score_all
from sleuth.scale import Scale
from sleuth.storage import read_json, read_lines, write_json
from sleuth.training.parallel import ranks
from sleuth.types import Score, Trajectory

FIGURES = ("em", "f1", "valid_format", "gold_recall", "searches", "duplicate_searches")
SAMPLES = 4
"""Samples a question for mean@4 and pass@4."""
WARM_START = "warm-start"
TRAINED, UNTRAINED = "kinds trained on", "other kinds"

WEIGHTLESS = ("eval_data", "eval_questions", "eval_every", "rollout_batch")
"""Settings of the scale that change no weights."""
REINFORCEMENT = ("temperature", "top_p", "batch", "lr", "lr_schedule", "lr_warmup", "frozen_layers", "engine")
REINFORCEMENT += ("candidates", "measure", "refill", "guards", "train_questions")
REINFORCEMENT += ("dev_every", "patience", "save_every")
"""Settings of the scale that a warm start without a probe does not read."""


@dataclass(frozen=True)
class Permuted(Reward):
    """Another reward with its scores permuted within a step, so that they do not depend on the episodes."""

    reward: Reward

    @property
    def reads_gold(self) -> bool:
        """Whether the other reward reads the gold passages."""
        return self.reward.reads_gold

    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        """The scores in an order that follows from the episodes alone.

        Raises RewardError for a single episode, which would get its own score back.
        """
        if len(trajectories) == 1:
            raise RewardError("the score of a single episode cannot be permuted")
        # Scores are made one by one in here if they must be: outside, each would be its own permutation.
        scores = score_all(self.reward, trajectories, engine)
        seed = sum(token for t in trajectories for token in t.tokens)
        return random.Random(seed).sample(scores, len(scores))

    def stages(self) -> Sequence[Reward]:
        """The other reward's stages, each permuted."""
        return [Permuted(stage) for stage in self.reward.stages()]

    def check(self, scale: Scale) -> None:
        """ConfigError for a scale at which the other reward is not defined."""
        self.reward.check(scale)


# An arm's recipe.json names it. As a script this module is __main__, and the class must be this very one.
REWARDS["permuted"] = f"{Permuted.__module__}:{Permuted.__qualname__}"


def permuted(recipe: Recipe) -> Recipe:
    """The method on permuted rewards; right answers still choose its questions."""
    return recipe.but(reward=Permuted(recipe.reward))


def rejection(recipe: Recipe) -> Recipe:
    """Rejection sampling of right answers in a valid format, with groups of the same size."""
    algorithm = RejectionSampling(group_size=recipe.algorithm.group_size)
    # One rule for all methods: some of their own rewards give a wrong answer more than others give a right one.
    return recipe.but(reward=AnswerReward(format_share=0.5), algorithm=algorithm)


ARMS: dict[str, Callable[[Recipe], Recipe]] = {
    "method": lambda recipe: recipe,
    "rejection": rejection,
    "permuted": permuted,
}


def main() -> None:
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # as the command line does
    options = arguments()
    seed, base = options.seed, options.runs / f"{options.recipe.replace('/', '-')}-{options.seed}"
    recipe = load_recipe(options.recipe).with_settings(options.set)
    recipe = recipe.sized(seed=seed, eval_data=options.data, eval_questions=options.questions)
    recipes = {WARM_START: recipe.sized(steps=0, dev_questions=0)}
    start = recipe.sized(model=str(base / WARM_START / "model"), warm_start_examples=0)
    recipes |= {arm: ARMS[arm](start) for arm in options.arms}
    if options.rank_of:
        with ranks.joined():
            train(recipes[options.rank_of], base / options.rank_of, options)
        return
    for name, wanted in recipes.items():
        check_finished(base / name, wanted)
    report: dict[str, Any] = {
        "command": shlex.join(["python", "benchmarks/learn.py", *sys.argv[1:]]),
        "commit": commit(),
        "recipe": recipe.to_dict(),
        "seed": seed,
        "questions": options.questions,
        "data": options.data,
        "versions": versions(),
        "arms": {},
    }
    path = options.json / f"{options.recipe.replace('/', '-')}-{seed}.json"
    warm: Evaluation | None = None
    for name, wanted in recipes.items():
        evaluation = run(name, wanted, base, options)
        warm = warm or evaluation
        report["arms"][name] = figures(base / name, evaluation, warm)
        write_json(path, report)
    print(json.dumps({name: arm["all"]["em"] for name, arm in report["arms"].items()}, indent=1))
    gain = report["arms"].get("method", {}).get("all", {}).get("em", {}).get("gain")
    if options.at_least is not None and (not gain or 100 * gain["value"] < options.at_least):
        sys.exit(f"learn.py: the method gained less than {options.at_least} EM points over its warm start")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipe")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=list(ARMS))
    parser.add_argument("--data", default="factbook:test", help="held-out questions")
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument(
        "--sampled", type=int, default=100, help="questions of which four answers are sampled"
    )
    parser.add_argument("--index", default="", help="index folder; default: that of the data set")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    at_least = "fail if the method gains fewer EM points over its warm start"
    parser.add_argument("--at-least", type=float, metavar="POINTS", help=at_least)
    parser.add_argument("--processes", type=int, default=1, help="of a training run, one thread each")
    parser.add_argument("--rank-of", help=argparse.SUPPRESS)  # the arm that this process is a rank of
    parser.add_argument("--runs", type=Path, default=Path("runs/learn"))
    parser.add_argument("--json", type=Path, default=Path("results/learn"))
    return parser.parse_args()


def check_finished(folder: Path, recipe: Recipe) -> None:
    """Raise ConfigError if `folder` holds a model trained with other settings, or `recipe` cannot be saved."""
    wanted = deciding(recipe, folder.name)
    if not (folder / "model").exists():
        return
    # Read as a recipe, so that a setting which is newer than the file has its default.
    if names := differing(deciding(load_recipe(str(folder)), folder.name), wanted):
        raise ConfigError(
            f"{folder} was trained with other {', '.join(names)}: remove it or choose another folder by --runs"
        )


def deciding(recipe: Recipe, arm: str) -> dict[str, Any]:
    """The settings that decide the weights of an arm, as plain values."""
    record = recipe.to_dict()
    ignored = {*WEIGHTLESS}
    if arm != WARM_START:
        ignored.add("model")  # the warm start, which may have moved
    else:
        record["reward"] = {}
        if not recipe.scale.warm_start_probe:
            ignored |= {*REINFORCEMENT}
            record["algorithm"] = {"type": record["algorithm"]["type"]}
    scale = {name: value for name, value in record["scale"].items() if name not in ignored}
    parts = {name: record[name] for name in ("protocol", "retriever", "reward", "algorithm")}
    return {**parts, "scale": scale}


def run(name: str, recipe: Recipe, base: Path, options: argparse.Namespace) -> Evaluation:
    """Train one arm, or read it if it is finished; evaluate it greedily and by samples."""

    done = base / name / "model"
    gc.collect()  # what was run before holds a model, its moments and its cache
    if not done.exists():
        if options.processes > 1:
            train_by_ranks(name, options.processes)
        else:
            train(recipe, base / name, options)
        gc.collect()
        give_back()
    trained = Experiment(recipe.sized(model=str(done)), base / name, options.index, say=say(base / name))
    trained.open()
    evaluation = trained.evaluate("eval")
    if options.sampled:
        world = replace(trained.world, sampling=Sampling(recipe.scale.max_new_tokens, temperature=1.0))
        measure_headroom(trained.eval_questions[: options.sampled], world, base / name / "samples", SAMPLES)
    return evaluation


def train(recipe: Recipe, folder: Path, options: argparse.Namespace) -> None:
    """Train one arm, as one of the ranks if torchrun started this process."""
    Experiment(recipe, folder, options.index, say=say(folder)).run(evaluate=False)


def train_by_ranks(name: str, processes: int) -> None:
    """Train one arm in several processes. Raises ConfigError if they fail; they print why."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(
        [sys.executable, *torchrun, __file__, *sys.argv[1:], "--rank-of", name], env=environment
    )
    if done.returncode:
        raise ConfigError(f"the {processes} processes that trained {name} did not finish")


def say(folder: Path) -> Callable[[str], None]:
    """Print a line that names the run and its arm, from the first rank."""

    def first(text: str) -> None:
        if ranks.is_first():
            print(f"{folder.parent.name} {folder.name}: {text}", flush=True)

    return first


def figures(folder: Path, evaluation: Evaluation, before: Evaluation) -> dict[str, Any]:
    """Figures of one arm: for all questions, each kind, and the kinds trained on, with paired differences to the warm start."""
    own, others = ({r.key: r for r in read_records(e.folder / QUESTIONS)} for e in (evaluation, before))
    trained = trained_kinds(read_json(folder / RECIPE)["scale"]["train_data"])
    kinds: dict[str, list[Any]] = defaultdict(list)
    for key, record in own.items():
        kinds["all"].append(key)
        kinds[record.kind].append(key)
        if trained:
            kinds[TRAINED if record.kind in trained else UNTRAINED].append(key)
    if UNTRAINED not in kinds:
        kinds.pop(TRAINED, None)  # the same as all
    found: dict[str, Any] = {}
    for kind, keys in kinds.items():
        found[kind] = {"n": len(keys)}
        for name in FIGURES:
            now, then = ([table[key].metrics.get(name) for key in keys] for table in (own, others))
            found[kind][name] = bootstrap_mean(now).to_dict()
            if evaluation is not before:
                found[kind][name]["gain"] = paired_difference(then, now).to_dict()
    steps = [row for row in read_lines(folder / "metrics.jsonl") if "reward/total" in row]
    names = (
        "reward/total",
        "rollouts/right",
        "reward/zero_variance",
        "rollouts/played",
        "update/entropy",
        "update/kl_start",
        "time/step_s",
    )
    # By these the results page pairs runs of several seeds question by question; the others are wrong.
    found["right"] = ["/".join(key) for key, record in own.items() if record.metrics["em"] == 1]
    found["curve"] = [{name: row[name] for name in names if name in row} for row in steps]
    # A curriculum measures candidates before each of its stages.
    if selections := [json.loads(path.read_text()) for path in sorted(folder.glob("*selection.json"))]:
        found["selection"] = {name: sum(each[name] for each in selections) for name in selections[0]}
    if (folder / "samples/headroom.json").exists():
        found["samples"] = json.loads((folder / "samples/headroom.json").read_text())
        if evaluation is not before:
            rates, start = (read_rates(e.folder.parent / "samples") for e in (evaluation, before))
            paired = paired_difference([start[key] for key in rates], list(rates.values()))
            found["samples"]["all"]["mean"]["gain"] = paired.to_dict()
    return found


def trained_kinds(train_data: str) -> set[str]:
    """Kinds of Factbook questions that training data such as "factbook:train/bridge,intersection" are limited to."""
    return set(train_data.partition("/")[2].split(",")) & set(SHARES)


if __name__ == "__main__":
    try:
        main()
    except RankError:
        sys.exit(1)
    except SleuthError as error:
        sys.exit(f"learn.py: {error}")
    except KeyboardInterrupt:  # the run has logged where it continues
        sys.exit(130)
