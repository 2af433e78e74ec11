"""Rollouts and an update of this checkout against an earlier commit, on the same greedy episodes.

The earlier commit is checked out into a temporary folder. Each measurement is a process of its own, the two
commits by turns; the least CPU time of each counts, because other load on the machine only adds to it.
Rollouts are those of rollouts.py: Q questions, G samples, three turns over contexts of 250 to about 800 tokens.
The update is one GRPO pass over two groups of six two-search episodes of about 500 tokens.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from parts import commit, machine, run_part, write

HERE = Path(__file__).resolve().parents[1]
LIMIT_S = 3600.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("commit", help="the earlier commit, or, with --run, the folder of a checkout")
    parser.add_argument(
        "--engine", default="transformers", help="this checkout's; the other uses its own decoder"
    )
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--questions", type=int, default=6)
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--max-new-tokens", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options, *options.run)))
    else:
        write(compare(options), options.json)


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Both commits, and whether tokens and gradients agree."""
    git = ["git", "-C", str(HERE), "worktree"]
    with tempfile.TemporaryDirectory() as work:
        earlier = Path(work) / "earlier"
        subprocess.run(
            [*git, "add", "--detach", str(earlier), options.commit], check=True, capture_output=True
        )
        try:
            rounds = [
                {
                    name: measure(options, folder, name, Path(work))
                    for name, folder in (("earlier", earlier), ("now", HERE))
                }
                for _ in range(options.repeat)
            ]
        finally:
            subprocess.run([*git, "remove", "--force", str(earlier)], check=False, capture_output=True)
        error = relative_error(Path(work) / "now.pt", Path(work) / "earlier.pt")
    written = {name: rounds[0][name].pop("written") for name in rounds[0]}
    best = {
        name: {part: min(done[name][part] for done in rounds) for part in ("rollout_cpu_s", "update_cpu_s")}
        for name in rounds[0]
    }
    return {
        "earlier": options.commit,
        "commit": commit(),
        "machine": machine(),
        "precision": options.precision,
        "engine": options.engine,
        "episodes": options.questions * options.samples,
        **best,
        "rollouts": round(best["earlier"]["rollout_cpu_s"] / best["now"]["rollout_cpu_s"], 2),
        "update": round(best["earlier"]["update_cpu_s"] / best["now"]["update_cpu_s"], 2),
        "episodes_with_equal_tokens": sum(a == b for a, b in zip(*written.values(), strict=True)),
        "gradient_relative_error": error,
    }


def measure(options: argparse.Namespace, folder: Path, name: str, work: Path) -> dict[str, Any]:
    """Figures of one checkout, in a process that imports its code."""
    engine = options.engine if name == "now" else "transformers"
    command = [__file__, *sys.argv[1:], "--run", str(folder), engine, str(work / f"{name}.pt")]
    paths = f"{folder / 'src'}:{folder / 'benchmarks'}"
    found = run_part(
        command, LIMIT_S, {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    )
    print(name, {key: value for key, value in found.items() if key != "written"}, file=sys.stderr)
    if "error" in found:
        raise SystemExit(f"{name}: {found['error']}")
    return found


def run(options: argparse.Namespace, folder: str, engine: str, gradient: str) -> dict[str, Any]:
    """CPU seconds of one checkout's rollouts and update."""
    import torch

    sys.path[:0] = [f"{folder}/benchmarks"]
    from rollouts import by_sleuth, prompts
    from sleuth.engines.models import load_model
    from sleuth.engines.transformers import TransformersEngine
    from sleuth.training.policy import Policy

    torch.set_num_threads(1)
    model, tokenizer = load_model("smollm2-135m-instruct", "float32", "cpu")
    policy = Policy(model, tokenizer, precision=options.precision)
    sampler: Any = TransformersEngine(policy.model, tokenizer, autocast=policy.autocast_dtype)
    if engine != "transformers":
        from parts import sampler as named

        sampler = named(engine, "smollm2-135m-instruct", policy)
    play = by_sleuth(sampler)
    play([list(range(5, 25))], 2)
    before = time.process_time()
    written = play(prompts(sampler, options.questions, options.samples), options.max_new_tokens)
    middle = time.process_time()
    update(policy)
    after = time.process_time()
    torch.save([parameter.grad for parameter in policy.trainable_parameters()], gradient)
    return {
        "rollout_cpu_s": round(middle - before, 2),
        "update_cpu_s": round(after - middle, 2),
        "written": written,
    }


def update(policy: Any) -> None:
    """One pass over two groups of six episodes: a prompt of 100 tokens, three turns, two results."""
    from sleuth.algorithms.grpo import GRPO
    from sleuth.types import Question, Segment, Signal, Trajectory

    try:
        from sleuth.training.update.gradients import accumulate_gradients
    except ImportError:  # before the update was divided
        from sleuth.training.update import accumulate_gradients

    rng = random.Random(0)

    def tokens(least: int, most: int) -> tuple[int, ...]:
        return tuple(rng.randrange(100, 40_000) for _ in range(rng.randint(least, most)))

    signals = []
    for question in range(2):
        prompt = Segment("prompt", "", tokens(100, 100))
        for sample in range(6):
            turns = [
                Segment("policy", "", tokens(40, 80))
                if turn % 2 == 0
                else Segment("world", "", tokens(100, 140))
                for turn in range(5)
            ]
            episode = Trajectory(Question(str(question), "", ()), (prompt, *turns))
            signals.append(Signal(episode, ((sample - 2.5) / 3,) * episode.response_length))
    accumulate_gradients(policy, GRPO(beta=0.0), signals, micro_batch_tokens=4096)


def relative_error(one: Path, other: Path) -> float:
    """‖a − b‖ / ‖b‖ over all parameters."""
    import torch

    pairs = list(zip(torch.load(one), torch.load(other), strict=True))
    difference = sum(float((a - b).double().square().sum()) for a, b in pairs)
    return float((difference / sum(float(b.double().square().sum()) for _, b in pairs)) ** 0.5)


if __name__ == "__main__":
    main()
