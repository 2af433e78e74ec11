"""Seconds of a training step in one process and in two (torchrun, gloo), one thread each, with the same rollouts.

The recipe is trained from the untrained model, so that all runs start alike without a warm start. Measure with as
many free cores as processes: hardware threads of one core share its arithmetic.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from parts import commit, machine, write

TIMES = ("time/step_s", "time/rollout_s", "time/update_s")
SETTINGS = {
    "precision": "float32",
    "engine": "transformers",
    "warm_start_examples": 0,
    "candidates": 0,
    "refill": 0,
    "dev_questions": 0,
    "guards": "false",
    "eval_questions": 1,
    "max_new_tokens": 64,
    "save_every": 0,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--recipe", default="eval-rar/cpu")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--questions", type=int, default=4, help="in a step, of 6 rollouts each")
    parser.add_argument("--steps", type=int, default=3, help="of which the first is left out")
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    found = {count: measure(options, count) for count in options.processes}
    first, *others = options.processes
    figures = {
        "machine": machine(),
        "commit": commit(),
        "recipe": options.recipe,
        "rollouts in a step": 6 * options.questions,
        "processes": found,
        "ratios": {
            f"{name.partition('/')[2].removesuffix('_s')}, {count} to {first}": found[first][name]
            / found[count][name]
            for count in others
            for name in TIMES
        },
    }
    write(figures, options.json)


def measure(options: argparse.Namespace, count: int) -> dict[str, float]:
    """Medians over the steps but the first."""
    settings = SETTINGS | {"batch": options.questions, "steps": options.steps}
    with TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(count)),
            *("-m", "sleuth", "train", options.recipe, "-o", str(run), "--no-eval"),
            *(part for name, value in settings.items() for part in ("--set", f"scale.{name}={value}")),
            *("--set", "algorithm.group_size=6"),
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        subprocess.run(command, check=True, stdout=sys.stderr, env=environment)
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()][1:]
    return {
        name: statistics.median(row[name] for row in rows)
        for name in (*TIMES, "update/tokens", "rollouts/state_tokens")
    }


if __name__ == "__main__":
    main()
