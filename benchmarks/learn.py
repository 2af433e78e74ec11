"""Does training make a model better? One method, one seed: a warm start and three ways to continue it.

    python benchmarks/learn.py eval-rar/cpu --seed 0 --runs runs/learn --json results/learn

The warm start imitates a fixed, small number of scripted demonstrations. Three arms start from its weights: the
method itself, rejection sampling of right answers, and the method on rewards that were permuted
within each step, which must not gain. All are evaluated greedily on the same held-out questions, and
sampled on some of them. Everything is resumed: finished parts are only read again. The JSON names the
command, the seed, the commit and the packages' versions.
"""

import argparse
import gc
import json
import random
import shlex
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from parts import commit

from sleuth.algorithms.rejection import RejectionSampling
from sleuth.engines.base import Engine, Sampling
from sleuth.errors import SleuthError
from sleuth.evaluation.headroom import measure_headroom
from sleuth.evaluation.records import read_records
from sleuth.evaluation.result import QUESTIONS, Evaluation
from sleuth.evaluation.statistics import bootstrap_mean, paired_difference
from sleuth.experiment import Experiment
from sleuth.memory import give_back
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.rewards.answer import AnswerReward
from sleuth.rewards.base import Reward
from sleuth.storage import read_lines, write_json
from sleuth.types import Score, Trajectory

FIGURES = ("em", "f1", "valid_format", "gold_recall", "searches", "duplicate_searches")
SAMPLES = 4
"""Samples a question for mean@4 and pass@4."""


@dataclass(frozen=True)
class Permuted(Reward):
    """Another reward with its scores permuted within a step, so that they do not depend on the episodes."""

    reward: Reward

    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        """The scores in an order that follows from the episodes alone."""
        scores = self.reward.score(trajectories, engine)
        seed = sum(token for t in trajectories for token in t.tokens)
        return random.Random(seed).sample(scores, len(scores))


def permuted(recipe: Recipe) -> Recipe:
    """The method on permuted rewards, which choose no questions either."""
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
    options = arguments()
    seed, base = options.seed, options.runs / f"{options.recipe.replace('/', '-')}-{options.seed}"
    recipe = load_recipe(options.recipe).with_settings(options.set)
    recipe = recipe.sized(seed=seed, eval_data=options.data, eval_questions=options.questions)
    warm = run("warm-start", recipe.sized(steps=0, dev_questions=0), base, options)
    model = str(base / "warm-start" / "model")
    results = {"warm-start": warm}
    for arm in options.arms:
        changed = ARMS[arm](recipe.sized(model=model, warm_start_examples=0))
        results[arm] = run(arm, changed, base, options)
    report = {
        "command": shlex.join(["python", "benchmarks/learn.py", *sys.argv[1:]]),
        "commit": commit(),
        "recipe": recipe.to_dict(),
        "seed": seed,
        "questions": options.questions,
        "data": options.data,
        "versions": dict(warm.versions),
        "arms": {name: figures(base / name, done, warm) for name, done in results.items()},
    }
    path = options.json / f"{options.recipe.replace('/', '-')}-{seed}.json"
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
    parser.add_argument("--runs", type=Path, default=Path("runs/learn"))
    parser.add_argument("--json", type=Path, default=Path("results/learn"))
    return parser.parse_args()


def run(name: str, recipe: Recipe, base: Path, options: argparse.Namespace) -> Evaluation:
    """Train one arm, or read it if it is finished; evaluate it greedily and by samples."""

    def say(text: str) -> None:
        print(f"{base.name} {name}: {text}", flush=True)

    done = base / name / "model"
    gc.collect()  # what was run before holds a model, its moments and its cache
    if not done.exists():
        Experiment(recipe, base / name, options.index, say=say).run(evaluate=False)
        gc.collect()
        give_back()
    trained = Experiment(recipe.sized(model=str(done)), base / name, options.index, say=say)
    trained.open()
    evaluation = trained.evaluate("eval")
    if options.sampled:
        world = replace(trained.world, sampling=Sampling(recipe.scale.max_new_tokens, temperature=1.0))
        measure_headroom(trained.eval_questions[: options.sampled], world, base / name / "samples", SAMPLES)
    return evaluation


def figures(folder: Path, evaluation: Evaluation, before: Evaluation) -> dict[str, Any]:
    """Figures of one arm: for all questions and each kind, with paired differences to the warm start."""
    own, others = ({r.key: r for r in read_records(e.folder / QUESTIONS)} for e in (evaluation, before))
    kinds: dict[str, list[Any]] = defaultdict(list)
    for key, record in own.items():
        kinds["all"].append(key)
        kinds[record.kind].append(key)
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
        "reward/zero_variance",
        "rollouts/played",
        "update/entropy",
        "update/kl_start",
        "time/step_s",
    )
    found["curve"] = [{name: row[name] for name in names if name in row} for row in steps]
    for name in ("selection.json", "samples/headroom.json"):
        if (folder / name).exists():
            found[name.split("/")[0].removesuffix(".json")] = json.loads((folder / name).read_text())
    return found


if __name__ == "__main__":
    try:
        main()
    except SleuthError as error:
        sys.exit(f"learn.py: {error}")
