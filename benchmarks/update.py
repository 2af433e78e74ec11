"""The update against the plain one: CPU seconds, wall time, memory, and that the gradients agree.

One group of rollouts of one question. Ours computes the shared prompt once. The yardstick, in plain
transformers, computes every rollout as a row of its own, one or many at a time; the faster counts.
Both apply the output layer to response tokens only.
"""

import argparse
import json
import math
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TARGET = 2.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="smollm2-135m-instruct", help="name or folder")
    parser.add_argument("--prompt", type=int, default=1500, help="prompt tokens")
    parser.add_argument("--response", type=int, default=150, help="response tokens")
    parser.add_argument("--group", type=int, default=7, help="rollouts of the question")
    parser.add_argument(
        "--rows", type=int, default=0, help="rows of the plain batch; 0 = what fits in memory"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=2, help="runs of each way; the quietest counts")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--gradient", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(options)))
        return
    figures = compare(options)
    print(json.dumps(figures, indent=2))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Each way in a process of its own, one after the other."""
    rows = options.rows or rows_that_fit(options)
    ways = list(dict.fromkeys(("shared", "1", str(rows))))
    with tempfile.TemporaryDirectory() as folder:
        rounds = [{way: child(way, Path(folder)) for way in ways} for _ in range(options.repeat)]
        found = {way: quietest([done[way] for done in rounds]) for way in ways}
        error = relative_error(Path(folder) / "shared", Path(folder) / "1")
    ours = found.pop("shared")
    plain = min(found.values(), key=lambda figures: figures["cpu_s"])
    ratio = plain["cpu_s"] / ours["cpu_s"]
    return {
        "model": options.model,
        "prompt_tokens": options.prompt,
        "response_tokens": options.response,
        "group": options.group,
        "threads": options.threads,
        "repeat": options.repeat,
        "machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores",
        "ours": ours,
        "plain": {f"{way} row(s) at a time": figures for way, figures in found.items()},
        "cpu_ratio": round(ratio, 2),
        "wall_ratio": round(plain["wall_s"] / ours["wall_s"], 2),
        "gradient_relative_error": error,
        "target": TARGET,
        "is_met": ratio >= TARGET and error <= 1e-4,
    }


def child(way: str, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, *sys.argv[1:], "--run", way, "--gradient", str(folder / way)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    print(f"{way}: {figures}", file=sys.stderr)
    return figures


def quietest(runs: list[dict[str, float]]) -> dict[str, float]:
    """Least time and most memory of all runs: other load on the machine only adds time."""
    return {name: (max if "rss" in name else min)(figures[name] for figures in runs) for name in runs[0]}


def rows_that_fit(options: argparse.Namespace) -> int:
    """Rows whose activations fit in half of the free memory, by what a small Llama keeps per token."""
    import psutil

    bytes_per_token = 2_000_000
    free = psutil.virtual_memory().available
    row: int = bytes_per_token * (options.prompt + options.response)
    return max(1, min(int(options.group), free // 2 // row))


def run(options: argparse.Namespace) -> dict[str, float]:
    """One update from loaded weights; saves its gradient."""
    import torch

    from sleuth.training.policy import Policy

    torch.set_num_threads(options.threads)
    policy = Policy.load(options.model, precision="float32", device="cpu")
    size = policy.model.get_input_embeddings().num_embeddings  # type: ignore[operator]
    draw = torch.Generator().manual_seed(0)
    prompt = torch.randint(0, size, (options.prompt,), generator=draw).tolist()
    responses = torch.randint(0, size, (options.group, options.response), generator=draw).tolist()
    advantages = [2 * i / max(1, options.group - 1) - 0.9 for i in range(options.group)]
    update = shared if options.run == "shared" else plain
    started, before = time.monotonic(), time.process_time()
    update(policy, prompt, responses, advantages, options.run)
    figures = {
        "cpu_s": round(time.process_time() - before, 2),
        "wall_s": round(time.monotonic() - started, 2),
        "peak_rss_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }
    torch.save([parameter.grad for parameter in policy.trainable_parameters()], options.gradient)
    return figures


def shared(
    policy: Any, prompt: list[int], responses: list[list[int]], advantages: list[float], _: str
) -> None:
    """Sleuth's update."""
    from sleuth.algorithms.grpo import GRPO
    from sleuth.training.update.gradients import accumulate_gradients
    from sleuth.types import Question, Segment, Signal, Trajectory

    question = Question("q", "", ())
    first = Segment("prompt", "", tuple(prompt))
    signals = [
        Signal(
            Trajectory(question, (first, Segment("policy", "", tuple(response)))),
            (advantage,) * len(response),
        )
        for response, advantage in zip(responses, advantages, strict=True)
    ]
    figures = accumulate_gradients(policy, GRPO(beta=0.0), signals)
    assert figures.shared == 1.0


def plain(
    policy: Any, prompt: list[int], responses: list[list[int]], advantages: list[float], way: str
) -> None:
    """The same on-policy loss with every rollout as a whole row, `way` rows at a time."""
    import torch

    length, step = len(responses[0]), int(way)
    for start in range(0, len(responses), step):
        part = torch.tensor([[*prompt, *response] for response in responses[start : start + step]])
        output = policy.model(input_ids=part, logits_to_keep=length + 1, use_cache=False)
        chosen = output.logits[:, :-1].log_softmax(-1).gather(-1, part[:, -length:, None])[..., 0]
        ratio = (chosen - chosen.detach()).exp()
        weights = torch.tensor(advantages[start : start + step])[:, None]
        loss = -(ratio * weights).mean(dim=1).sum() / len(responses)
        loss.backward()


def relative_error(one: Path, other: Path) -> float:
    """‖a − b‖ / ‖b‖ over all parameters."""
    import torch

    difference = whole = 0.0
    for a, b in zip(torch.load(one), torch.load(other), strict=True):
        difference += float((a - b).double().square().sum())
        whole += float(b.double().square().sum())
    return math.sqrt(difference / whole)


if __name__ == "__main__":
    main()
