"""Seconds of a training step in one process and in two (torchrun, gloo), one thread each, on the same questions.

All counts of processes start at the weights of one finished run, such as the demo's, which already give valid episodes.
Measure with as many free cores as processes: hardware threads of one core share its arithmetic.
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
    "micro_batch_tokens": 1024,
    "save_every": 0,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path, help="a finished run: its recipe is trained from its weights")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--questions", type=int, default=12, help="in a step, of 6 rollouts each")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args()
    found = {count: measure(options, count) for count in options.processes}
    first, *others = options.processes
    figures = {
        "machine": machine(),
        "commit": commit(),
        "recipe": json.loads((options.run / "recipe.json").read_text())["name"],
        "steps": options.steps,
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
    """Means over the steps."""
    settings = SETTINGS | {"model": options.run / "model", "batch": options.questions, "steps": options.steps}
    with TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(count)),
            *("-m", "sleuth", "train", str(options.run), "-o", str(run), "--no-eval"),
            *(part for name, value in settings.items() for part in ("--set", f"scale.{name}={value}")),
            *("--set", "algorithm.group_size=6", "--set", "algorithm.drop_zero_variance=false"),
        ]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        subprocess.run(command, check=True, stdout=sys.stderr, env=environment)
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {
        name: statistics.fmean(row[name] for row in rows)
        for name in (*TIMES, "update/tokens", "rollouts/state_tokens")
    }


if __name__ == "__main__":
    main()
