"""Preferences of EVO-RAG: siblings at the states that a model visits, compared by the returns of several rewards.

At every state of one episode a training question, N siblings act and play to their end (T 0.8). Half of them, drawn
again and again, give the state's best pair as in training; the others are fresh branches, often of the same actions.

    python benchmarks/siblings.py runs/WARM-START/model --episodes siblings.jsonl --json results/benchmarks/siblings.json

A file of episodes that exists is compared again, and nothing is played.
"""

import argparse
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from parts import commit, machine, write

from sleuth.evaluation.statistics import bootstrap_ratio
from sleuth.experiment import Experiment
from sleuth.gold import gold_shown
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.recipes.evo_rag.siblings import Candidate, best_pair, branch, candidates_of
from sleuth.rewards.base import Reward, score_all
from sleuth.rollouts.store import TrajectoryReader, TrajectoryWriter
from sleuth.training.figures import is_right
from sleuth.training.questions.order import shuffled
from sleuth.types import Trajectory

DATA = "factbook:train/bridge,intersection"
DRAWS = 40
"""Draws of half the siblings at each state."""
Branch = tuple[Trajectory, Candidate]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="folder of the model that plays, such as a warm start's")
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument(
        "--siblings", type=int, default=8, help="at each state, the trunk's action among them"
    )
    parser.add_argument("--episodes", type=Path, required=True, help="episodes, written or read (JSONL)")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    recipe = load_recipe("evo-rag/cpu")
    if not options.episodes.exists():
        sizes = {"train_data": DATA, "max_steps": 20, "dev_questions": 0, "warm_start_examples": 0}
        collect(recipe.sized(model=options.model, **sizes), options)
    groups = groups_of(TrajectoryReader(options.episodes))
    figures = {
        "machine": machine(),
        "commit": commit(),
        "questions": len({group[0].question.id for group in groups}),
        "states": len(groups),
        "episodes": len({id(t) for group in groups for t in group}),
        "settings": {name: compared(groups, reward) for name, reward in rewards(recipe).items()},
    }
    write(figures, options.json)


def collect(recipe: Recipe, options: argparse.Namespace) -> None:
    """Play the siblings and keep them, trunks before their forks."""
    with TemporaryDirectory() as folder:
        experiment = Experiment(recipe, Path(folder))
        experiment.open()
        order = shuffled(len(experiment.train_questions), "noise", 11)
        questions = [experiment.train_questions[i] for i in order[: options.questions]]
        world = experiment.world.sampled(0.8, 1.0)
        groups = branch(questions, world, options.siblings, seed=5, width=40, on_done=played)
        experiment.close()
    once = {id(trajectory): trajectory for group in groups for trajectory in group}
    with TrajectoryWriter(options.episodes) as writer:
        for trajectory in once.values():
            writer.append(trajectory)


def played(_: Trajectory) -> None:
    print(".", end="", flush=True)


def groups_of(episodes: Iterable[Trajectory]) -> list[list[Trajectory]]:
    """The siblings of every state: the trunk, then the forks of one of its turns."""
    trunks: dict[str, Trajectory] = {}
    groups: dict[tuple[str, int], list[Trajectory]] = {}
    for trajectory in episodes:
        question = trajectory.question.id
        if trajectory.fork < 0:
            trunks[question] = trajectory
        else:
            groups.setdefault((question, trajectory.fork), [trunks[question]]).append(trajectory)
    return list(groups.values())


def rewards(recipe: Recipe) -> dict[str, Reward]:
    """The rewards to compare, by name."""
    reward: Any = recipe.reward
    found: dict[str, Reward] = {}
    for last in (5, 10, 20):
        curriculum = replace(reward.curriculum, max_steps=last)
        stages = replace(reward, curriculum=curriculum).stages()
        found |= {f"T_max {last}, stage {i}": stage for i, stage in enumerate(stages, 1)}
    found["end weights"] = replace(reward, curriculum=replace(reward.curriculum, schedule="none"))
    found["answer alone"] = load_recipe("evo-rag/no-reward-cpu").reward
    return found


def compared(groups: Sequence[Sequence[Trajectory]], reward: Reward) -> dict[str, Any]:
    """Shares, with intervals over questions, of what the pairs of all states prefer by this reward."""
    episodes = list({id(t): t for group in groups for t in group}.values())
    scores = {id(t): score for t, score in zip(episodes, score_all(reward, episodes, None), strict=True)}
    rng = random.Random(0)
    by_question: dict[str, Counter[str]] = defaultdict(Counter)
    for group in groups:
        candidates = candidates_of([t.scored(scores[id(t)]) for t in group])
        counts = by_question[group[0].question.id]
        branches = list(zip(group, candidates, strict=True)) if candidates else []
        for first, second in combinations(branches, 2):
            count_order(counts, first, second)
        for _ in range(DRAWS if branches else 0):
            rng.shuffle(branches)
            count_pair(counts, branches[: len(branches) // 2], branches[len(branches) // 2 :], rng)

    def share(name: str, of: str) -> dict[str, Any]:
        tops, bottoms = ([counts[key] for counts in by_question.values()] for key in (name, of))
        return bootstrap_ratio(tops, bottoms).to_dict()

    kinds = ("search over search", "answer over answer", "answer over search", "search over answer")
    outcomes = (
        "right over wrong",
        "wrong over right",
        "repeats a hit more often",
        "repeats a hit less often",
    )
    return {
        "draws with a pair": share("pairs", "draws"),
        **{name: share(name, "pairs") for name in kinds + outcomes},
        "same order on fresh branches": share("same order", "fresh"),
        "right answer's return above the wrong one's": share("right above", "right and wrong"),
    }


def count_order(counts: Counter[str], first: Branch, second: Branch) -> None:
    """Note whether the return puts a right episode above a wrong one."""
    right, wrong = sorted((first, second), key=lambda branch: not is_right(branch[0]))
    if is_right(right[0]) and not is_right(wrong[0]):
        counts["right and wrong"] += 1
        counts["right above"] += right[1].value > wrong[1].value


def count_pair(
    counts: Counter[str], branches: Sequence[Branch], fresh: Sequence[Branch], rng: random.Random
) -> None:
    """Note what the best pair prefers, and whether two fresh branches of its actions are in the same order."""
    counts["draws"] += 1
    pair = best_pair([candidate for _, candidate in branches], 0.2)
    if pair is None:
        return
    counts["pairs"] += 1
    chosen, rejected = (
        next(t for t, candidate in branches if candidate.turn is turn)
        for turn in (pair.chosen, pair.rejected)
    )
    kinds = [turn.actions[0].kind for turn in (pair.chosen, pair.rejected)]
    counts[" over ".join(kinds)] += 1
    counts["right over wrong"] += is_right(chosen) and not is_right(rejected)
    counts["wrong over right"] += is_right(rejected) and not is_right(chosen)
    counts["repeats a hit more often"] += repeats(chosen) > repeats(rejected)
    counts["repeats a hit less often"] += repeats(chosen) < repeats(rejected)
    again = [
        [c.value for _, c in fresh if action(c.turn) == action(turn)] for turn in (pair.chosen, pair.rejected)
    ]
    if all(again):
        better, worse = map(rng.choice, again)
        counts["fresh"] += better != worse
        counts["same order"] += better > worse


def action(turn: Trajectory) -> tuple[str, str]:
    return turn.actions[0].kind, turn.actions[0].text


def repeats(trajectory: Trajectory) -> int:
    """Searches whose gold passages were all shown before."""
    seen: set[str] = set()
    count = 0
    for search in (a for a in trajectory.actions if a.kind == "search"):
        results = trajectory.segments[search.segment + 1 : search.segment + 2]
        shown = gold_shown(trajectory.question, [hit.passage for s in results for hit in s.hits])
        count += bool(shown) and shown <= seen
        seen |= shown
    return count


if __name__ == "__main__":
    main()
