"""Parts of step.py that measure Sleuth alone or against plain generation: methods, evaluation, growth, profile."""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from parts import Stopwatch
from retelling import TRUNK, asked, eviomni_episodes, in_rounds, world_of
from torch.profiler import ProfilerActivity, _ExperimentalConfig
from torch.profiler import profile as profiler
from trainers import our_update, random_group, their_update, trl_copy

from rollouts import generate
from sleuth.engines.base import Sampling
from sleuth.evaluation.runner import evaluate
from sleuth.recipes.evo_rag.siblings import branch
from sleuth.rollouts.run import roll_out
from sleuth.types import Signal

SIBLINGS = 4
GROWTH = {"samples": (2, 8), "turns": (1, 5), "documents": (2, 8)}
BASE = {"samples": 4, "turns": 3, "documents": 4}
KINDS = {
    "matrix products": ("aten::mm", "aten::addmm", "aten::linear", "mkldnn"),
    "attention": ("aten::bmm", "aten::baddbmm", "attention", "softmax"),
    "casts and copies": ("copy_", "_to_copy", "clone", "aten::cat", "contiguous", "index", "fill_", "zero_"),
    "elementwise": ("aten::",),
}
"""Kinds of operations by parts of their names; the first kind that fits counts."""


def autocast(policy: Any) -> Any:
    """Around transformers' generate: the arithmetic of our engine, each weight cast once."""
    return torch.autocast("cpu", policy.autocast_dtype, enabled=policy.autocast_dtype is not None)


def methods(options: argparse.Namespace, policy: Any, engine: Any) -> dict[str, Any]:
    return {
        "eviomni_probes": probes(options, policy, engine),
        "evo_rag_siblings": siblings(options, engine),
    }


def probes(options: argparse.Namespace, policy: Any, engine: Any) -> dict[str, Any]:
    """A group's episodes, then both probes of each on the cache they left; and generate on the same contexts."""
    watch, stops = Stopwatch(), ("</answer>",)
    episodes, reward = watch.time(
        "episodes", partial(eviomni_episodes, engine, options.questions, options.samples, options.new)
    )
    requests = [[reward.request(t, name, engine) for t in episodes] for name in ("rationale", "evidence")]
    sampling = Sampling(reward.probe_tokens, temperature=0.0, stop=stops)
    done = watch.time("probes", lambda: engine.generate([*requests[0], *requests[1]], sampling))
    with autocast(policy):
        plain = watch.time(
            "generate",
            lambda: [
                tokens
                for each in requests
                for tokens in generate(
                    policy.model, policy.tokenizer, [r.tokens for r in each], reward.probe_tokens, stops
                )
            ],
        )
    equal = sum(list(one.tokens) == other for one, other in zip(done, plain, strict=True))
    seconds = {name: round(value / len(episodes), 3) for name, value in watch.best().items()}
    return {
        "cpu_s_an_episode": seconds,
        "probes_with_equal_tokens": f"{equal} of {len(plain)}",
        "ratio_to_generate": round(seconds["generate"] / seconds["probes"], 2),
    }


def siblings(options: argparse.Namespace, engine: Any) -> dict[str, Any]:
    """A trunk and forks at each of its turns; the same episodes played whole; and as many with own documents.

    Whole episodes with the same documents share their contexts in the engine, so the last way is what siblings replace.
    """
    watch, world, questions = Stopwatch(), world_of(engine, options.new), asked(2 * options.questions)
    engine.release()
    groups = watch.time("siblings", lambda: branch(questions, world, SIBLINGS))
    states = range(1, 2 * world.protocol.turns, 2)
    places = (TRUNK, *((state, sample) for state in states for sample in range(1, SIBLINGS)))
    plain = replace(world, protocol=replace(world.protocol, replayed=places))
    engine.release()
    whole = watch.time("whole episodes", lambda: roll_out(questions, plain, samples=len(places)))
    engine.release()
    watch.time("independent episodes", lambda: roll_out(questions, world, samples=len(places)))
    forks = sorted(t.tokens for group in groups for t in group[1:])
    equal = forks == sorted(t.tokens for group in whole for t in group[1:])
    count = len(places) * len(questions)
    seconds = {name: round(value / count, 3) for name, value in watch.best().items()}
    return {
        "episodes": count,
        "cpu_s_an_episode": seconds,
        "equal_tokens": equal,
        "ratio_to_whole": round(seconds["whole episodes"] / seconds["siblings"], 2),
        "ratio_to_independent": round(seconds["independent episodes"] / seconds["siblings"], 2),
    }


def evaluation(options: argparse.Namespace, policy: Any, engine: Any) -> dict[str, Any]:
    watch, world = Stopwatch(), world_of(engine, options.new)
    questions = asked(options.questions * options.samples)
    engine.release()
    with TemporaryDirectory() as folder:
        watch.time("evaluate", lambda: evaluate(questions, world, Path(folder)))
    prompts = [question.text for question in questions]
    with autocast(policy):
        watch.time(
            "generate",
            lambda: in_rounds(policy.model, policy.tokenizer, world.protocol, prompts, options.new),
        )
    seconds = watch.best()
    return {
        "questions": len(questions),
        "questions_per_cpu_s": {name: round(len(questions) / value, 3) for name, value in seconds.items()},
        "ratio_to_generate": round(seconds["generate"] / seconds["evaluate"], 2),
    }


def play(options: argparse.Namespace, engine: Any, samples: int, **changes: int) -> list[Any]:
    """Scored signals of one question's episodes, from an empty cache."""
    engine.release()
    (group,) = roll_out(asked(1), world_of(engine, options.new, **changes), samples=samples)
    return [Signal(t, ((-1.0) ** i,) * t.response_length) for i, t in enumerate(group)]


def growth(options: argparse.Namespace, policy: Any, engine: Any) -> dict[str, Any]:
    rows = []
    for changed in [{}, *({name: value} for name, values in GROWTH.items() for value in values)]:
        watch, settings = Stopwatch(), BASE | changed
        signals = watch.time("rollouts", partial(play, options, engine, **settings))
        policy.model.zero_grad(set_to_none=True)
        watch.time("update", partial(our_update, policy, signals, options.micro_batch_tokens))
        each = {f"{name}_s": round(value / len(signals), 2) for name, value in watch.best().items()}
        tokens = sum(len(signal.trajectory.tokens) for signal in signals) // len(signals)
        rows.append({**settings, "tokens": tokens, **each})
    return {"rows": rows}


def profile(options: argparse.Namespace, policy: Any, engine: Any) -> dict[str, dict[str, float]]:
    """Shares of time by kind of operation; updates of two rows, since the profiler keeps every operation."""
    signals = play(options, engine, options.samples)[:2]
    group = random_group(policy, options.prompt, options.response, 2)
    found = {"rollouts": shares(lambda: play(options, engine, options.samples))}
    engine.release()
    for name, rows in {"update in step": signals, "update": group}.items():
        policy.model.zero_grad(set_to_none=True)
        found[name] = shares(partial(our_update, policy, rows, options.micro_batch_tokens))
    policy.model.zero_grad(set_to_none=True)
    with TemporaryDirectory() as folder:
        trainer = trl_copy(policy, folder)
        trainer.model.eval()
        found["TRL's update"] = shares(partial(their_update, trainer, group))
    return found


def shares(work: Callable[[], Any]) -> dict[str, float]:
    """Seconds of `work` under the profiler, and the share of each kind of operation."""
    every_thread = _ExperimentalConfig(profile_all_threads=True)  # our engine decodes in one of its own
    with profiler(activities=[ProfilerActivity.CPU], experimental_config=every_thread) as record:
        started = time.perf_counter()
        work()
        seconds = time.perf_counter() - started
    sums: dict[str, float] = defaultdict(float)
    for event in record.key_averages():
        kind = next((k for k, names in KINDS.items() if any(n in event.key for n in names)), "other")
        sums[kind] += event.self_cpu_time_total / 1e6
    sums["between operations"] = max(0.0, seconds - sum(sums.values()))
    return {"seconds": round(seconds, 2)} | {k: round(value / seconds, 3) for k, value in sums.items()}
