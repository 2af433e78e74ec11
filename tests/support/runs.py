"""A run folder as training writes it, from scripted episodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sleuth.recipes import load_recipe
from sleuth.rollouts.store import TrajectoryWriter
from sleuth.storage import LinesWriter, write_json
from sleuth.types import Question, Score, Trajectory
from support.contracts import QUESTION, SEARCHES, agent_that

GOLD = Question("q1", QUESTION, ("Ann Bell",), gold_ids=("p1",))
SECOND = Question("q2", "Where was Ann Bell born?", ("Karstad",), gold_ids=("p2",))


def episode(question: Question, answer: str, reward: float, sample: int = 0) -> Trajectory:
    """A scored episode that searches once."""
    writes = [SEARCHES[0], f"<evaluate>Doc 1.</evaluate><answer>{answer}</answer>"]
    played = agent_that(writes).ask(question.text).trajectory
    return replace(played, question=question, sample=sample).scored(Score(reward, {"answer": reward}))


def row(step: int, **figures: float) -> dict[str, object]:
    """A row of metrics.jsonl."""
    shown = {
        "reward/total": 0.1 * step,
        "reward/total_se": 0.05,
        "reward/answer": 0.1 * step,
        "reward/zero_variance": 0.5,
    }
    more = {
        "rollouts/valid_format": 0.9,
        "rollouts/episodes": 10.0,
        "update/kl": 0.01 * step,
        "time/step_s": 30.0,
    }
    return {"phase": "train", "step": step, **shown, **more, **figures}


def make_run(folder: Path, steps: int = 3, answer: str = "Tom Reed") -> Path:
    """A run of `steps` steps: groups of three samples, of which the first is right; and one evaluation."""
    write_json(folder / "recipe.json", load_recipe("eval-rar/cpu").sized(steps=40).to_dict())
    with LinesWriter(folder / "metrics.jsonl") as metrics:
        for step in range(1, steps + 1):
            metrics.write(row(step))
            add_step(folder, step, answer)
    with TrajectoryWriter(folder / "eval" / "trajectories.jsonl") as writer:
        writer.append(episode(GOLD, answer, 0.0))
        writer.append(episode(SECOND, "Karstad", 1.0))
    return folder


def add_step(folder: Path, step: int, answer: str = "Tom Reed") -> None:
    """Write the stored rollouts of one step."""
    with TrajectoryWriter(folder / "rollouts" / f"step-{step:06d}.jsonl") as writer:
        for sample, written in enumerate(("Ann Bell", answer, answer)):
            writer.append(episode(GOLD, written, float(written == "Ann Bell"), sample))
