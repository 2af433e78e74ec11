"""One GPU in less than ten minutes: are Sleuth's results correct on it, and how much of the card does it use?

Each part runs in a process of its own with a time limit. A part that fails is recorded, and the others still run.

- card: bytes/s of a large copy and operations/s of a large product, against which the shares are taken.
- correctness: greedy tokens and GRPO gradients on the device against those on the CPU, in float32.
- rollouts: policy tokens/s of our decoder on the episodes of rollouts.py, and of vLLM where it is installed.
- update: tokens/s of one GRPO update, and its share of the card (6 operations per weight and token).
- step: a whole GRPO step of single-turn questions, by our decoder and by vLLM.
- trl: the same step by TRL's GRPOTrainer, with vLLM in the same process where it is installed.

`--device cpu` runs the same parts small. Nothing but the model is needed: no data, no network.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from parts import run_part, write

LIMITS = {
    "card": 30,
    "correctness": 90,
    "rollouts": 80,
    "rollouts vllm": 100,
    "update": 60,
    "step": 60,
    "step vllm": 80,
    "trl": 90,
}
"""Seconds of each part on a GPU, 590 in all; three times as many on CPU."""
SIZES = {
    "cuda": {"questions": 16, "samples": 8, "new": 128, "prompt": 500, "response": 256, "matrix": 8192},
    "cpu": {"questions": 2, "samples": 2, "new": 8, "prompt": 40, "response": 8, "matrix": 512},
}
STEPS = 4
"""GRPO steps; the first one warms up and is not counted."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", default="smollm2-135m-instruct", help="name or folder")
    parser.add_argument("--device", choices=SIZES, default="cuda")
    parser.add_argument("--parts", nargs="+", choices=LIMITS, default=list(LIMITS))
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(PARTS[options.run.split()[0]](options, "vllm" in options.run)))
        return
    figures: dict[str, Any] = {"model": options.model, "device": options.device, "machine": machine(options)}
    for name in options.parts:
        figures[name] = part(options, name)
        print(f"{name}: {figures[name]}", file=sys.stderr)
    figures["shares"] = shares(figures)
    write(figures, options.json)


def machine(options: argparse.Namespace) -> dict[str, str]:
    import torch
    import transformers

    name = torch.cuda.get_device_name() if options.device == "cuda" and torch.cuda.is_available() else ""
    versions = {"torch": torch.__version__, "transformers": transformers.__version__}
    return {"card": name or platform.processor() or platform.machine(), **versions}


def part(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Figures of one part, or its error."""
    on_cuda = options.device == "cuda"
    command = [__file__, "--model", options.model, "--device", options.device, "--run", name]
    return run_part(
        command, LIMITS[name] * (1 if on_cuda else 3), {} if on_cuda else {"CUDA_VISIBLE_DEVICES": ""}
    )


def shares(figures: dict[str, Any]) -> dict[str, float]:
    """Parts of what the card can do, as measured by `card`."""
    card, update, rollouts = (figures.get(name, {}) for name in ("card", "update", "rollouts"))
    found = {}
    if "flops_per_s" in card and "flops_per_s" in update:
        found["update_of_peak"] = round(update["flops_per_s"] / card["flops_per_s"], 4)
    if "bytes_per_s" in card and "weight_bytes_per_s" in rollouts:
        found["rollouts_of_bandwidth"] = round(rollouts["weight_bytes_per_s"] / card["bytes_per_s"], 4)
    return found


def timed(work: Any, device: str) -> float:
    """Seconds of `work`, with everything it put on the card done."""
    import torch

    def wait() -> None:
        if device == "cuda":
            torch.cuda.synchronize()

    wait()
    started = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - started


def card(options: argparse.Namespace, _: bool) -> dict[str, Any]:
    import torch

    size = SIZES[options.device]["matrix"]
    dtype = torch.bfloat16 if options.device == "cuda" else torch.float32
    matrix = torch.ones(size, size, device=options.device, dtype=dtype)
    product = min(timed(lambda: matrix @ matrix, options.device) for _ in range(5))
    copy = min(timed(lambda: matrix.clone(), options.device) for _ in range(5))
    moved = 2 * matrix.numel() * matrix.element_size()
    return {"flops_per_s": 2 * size**3 / product, "bytes_per_s": moved / copy}


def correctness(options: argparse.Namespace, _: bool) -> dict[str, Any]:
    """Float32 on both: equal greedy tokens, and the relative difference of all gradients."""
    import torch

    small = SIZES["cpu"] | {"new": 16}
    tokens, gradients = {}, {}
    for device in ("cpu", options.device):
        policy, engine = learner(options.model, device, "float32")
        tokens[device] = play(engine, small)[0]
        update(policy, small, gradients_only=True)
        gradients[device] = torch.cat([p.grad.flatten().cpu() for p in policy.trainable_parameters()])
    one, other = gradients["cpu"], gradients[options.device]
    difference = float((one - other).norm() / one.norm())
    equal = tokens["cpu"] == tokens[options.device]
    return {"equal_tokens": equal, "gradient_difference": difference, "right": equal and difference < 1e-4}


def rollouts(options: argparse.Namespace, vllm: bool) -> dict[str, Any]:
    """Turns of multi-turn episodes on cached prefixes; weight bytes/s as if every step wrote one token a row."""
    size = SIZES[options.device]
    policy, engine = learner(options.model, options.device, "auto", vllm=vllm)
    play(engine, size | {"questions": 1})
    engine.release()
    written, seconds = play(engine, size)
    count = sum(map(len, written))
    width = 2 if policy.autocast_dtype else 4
    weights = width * sum(p.numel() for p in policy.model.parameters())
    figures = {"tokens": count, "tokens_per_s": round(count / seconds, 1), **engine.describe()}
    return figures | {"weight_bytes_per_s": weights * count / len(written) / seconds}


def update_part(options: argparse.Namespace, _: bool) -> dict[str, Any]:
    policy, _engine = learner(options.model, options.device, "auto")
    size = SIZES[options.device]
    update(policy, size)
    seconds = timed(lambda: update(policy, size), options.device)
    tokens = size["prompt"] + size["samples"] * size["response"]
    work = 6 * tokens * sum(p.numel() for p in policy.model.parameters())
    return {
        "tokens": tokens,
        "tokens_per_s": round(tokens / seconds, 1),
        "flops_per_s": work / seconds,
        **memory(options.device),
    }


def memory(device: str) -> dict[str, float]:
    import torch

    return {"peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2)} if device == "cuda" else {}


def learner(model: str, device: str, precision: str, vllm: bool = False) -> tuple[Any, Any]:
    """A policy, and the engine with its weights."""
    from sleuth.engines.transformers import TransformersEngine
    from sleuth.training.policy import Policy

    policy = Policy.load(model, device=device, precision=precision)  # type: ignore[arg-type]
    if not vllm:
        return policy, TransformersEngine(policy.model, policy.tokenizer, autocast=policy.autocast_dtype)
    from sleuth.engines.vllm import VLLMEngine

    engine = VLLMEngine(model, dtype="bfloat16" if policy.autocast_dtype else "float32")
    engine.sync(policy)
    return policy, engine


def play(engine: Any, size: dict[str, int]) -> tuple[list[list[int]], float]:
    """Tokens written in the greedy episodes of rollouts.py, and seconds."""
    import rollouts as episodes

    started = time.perf_counter()
    prompts = episodes.prompts(engine, size["questions"], size["samples"])
    return episodes.by_sleuth(engine)(prompts, size["new"]), time.perf_counter() - started


def update(policy: Any, size: dict[str, int], gradients_only: bool = False) -> None:
    """One GRPO update of a group of random rollouts with a shared prompt."""
    from trainers import our_update, random_group

    from sleuth.training.update.optimiser import Optimiser, Schedule

    our_update(policy, random_group(policy, size["prompt"], size["response"], size["samples"]))
    if not gradients_only:
        Optimiser(policy.trainable_parameters(), Schedule(1e-6, 1)).step()


def questions(count: int) -> list[str]:
    return [
        f"Write a long and lively story about the number {i} and its neighbour {i + 1}." for i in range(count)
    ]


def letters(text: str) -> float:
    """A reward that differs between samples: distinct characters, in tens."""
    return len(set(text)) / 10


def step(options: argparse.Namespace, vllm: bool) -> dict[str, Any]:
    """Steps of `train` on single-turn questions, every token by the policy."""
    from trainers import sleuth_steps

    from sleuth.algorithms.grpo import GRPO
    from sleuth.episodes.limits import Limits
    from sleuth.episodes.world import World
    from sleuth.protocols.prompted.direct import Direct
    from sleuth.retrievers.given import GivenParagraphs
    from sleuth.rewards.base import Reward
    from sleuth.scale import Scale
    from sleuth.training.loop import Parts
    from sleuth.types import Passage, Question, Score, Trajectory

    @dataclass(frozen=True)
    class Letters(Reward):
        def score(self, trajectories: Sequence[Trajectory], engine: Any = None) -> list[Score]:
            return [Score(letters(t.segments[-1].text), {}) for t in trajectories]

    size = SIZES[options.device]
    sizes = {"max_steps": 1, "max_new_tokens": size["new"], "max_context": 900, "batch": size["questions"]}
    scale = Scale(
        options.model, "", "", **sizes, rollout_batch=512, steps=STEPS, save_every=0, guards=False, lr=1e-6
    )
    policy, engine = learner(options.model, options.device, "auto", vllm=vllm)
    world = World(Direct(instruction=""), engine, GivenParagraphs(), Limits.of(scale))
    given = (Passage("none", "", "none"),)  # never read
    asked = [Question(str(i), text, ("",), given) for i, text in enumerate(questions(size["questions"]))]
    parts = Parts(asked, world, Letters(), GRPO(group_size=size["samples"], beta=0.0))
    row = min(sleuth_steps(policy, parts, scale)[1:], key=lambda each: each["time/step_s"])
    names = ("time/step_s", "time/rollout_s", "time/update_s", "rollouts/response_length")
    return {
        **{name: round(row[name], 3) for name in names},
        "gap": row.get("rollouts/logprob_gap"),
        **memory(options.device),
    }


def trl(options: argparse.Namespace, _: bool) -> dict[str, Any]:
    """TRL's trainer on the same questions, group, lengths and reward."""
    import importlib.util

    from trainers import trl_trainer
    from transformers import TrainerCallback

    from sleuth.engines.models import load_model

    size, on_cuda = SIZES[options.device], options.device == "cuda"
    model, tokenizer = load_model(options.model, "float32", options.device)
    by_vllm = on_cuda and importlib.util.find_spec("vllm") is not None
    times: list[float] = []

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            times.append(time.perf_counter())

    rows = size["questions"] * size["samples"]
    settings = {"vllm_mode": "colocate", "vllm_gpu_memory_utilization": 0.3} if by_vllm else {}
    with TemporaryDirectory() as folder:
        trainer = trl_trainer(
            model,
            tokenizer,
            [[{"role": "user", "content": text}] for text in questions(size["questions"])] * STEPS,
            folder,
            reward_funcs=lambda completions, **_: [letters(one[0]["content"]) for one in completions],
            callbacks=[Clock()],
            per_device_train_batch_size=rows if rows <= 32 else 32,
            gradient_accumulation_steps=max(1, rows // 32),
            num_generations=size["samples"],
            max_completion_length=size["new"],
            max_steps=STEPS,
            learning_rate=1e-6,
            bf16=on_cuda,
            use_cpu=not on_cuda,
            use_vllm=by_vllm,
            **settings,
        )
        trainer.train()
    fastest = min(later - earlier for earlier, later in pairwise(times))
    return {"time/step_s": round(fastest, 3), "vllm": by_vllm, **memory(options.device)}


PARTS = {
    "card": card,
    "correctness": correctness,
    "rollouts": rollouts,
    "update": update_part,
    "step": step,
    "trl": trl,
}

if __name__ == "__main__":
    main()
