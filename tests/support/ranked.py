"""Work done by several ranks: processes on this machine that talk through gloo.

They are forked from a server that has imported the libraries once. What a rank does must be a function
of this module, since test files cannot be imported by name.
"""

import multiprocessing
import os
import pickle
import socket
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.distributed.tensor import DTensor

from sleuth.algorithms.grpo import GRPO
from sleuth.algorithms.rejection import RejectionSampling
from sleuth.engines.transformers import TransformersEngine
from sleuth.errors import TrainingError
from sleuth.recipes.evo_rag.dpo import DPO
from sleuth.training.parallel import ranks
from sleuth.training.parallel.sharding import plain
from sleuth.training.policy import Policy
from sleuth.training.runs.log import RunLog, SilentLog
from sleuth.training.update import forward
from sleuth.training.update.gradients import accumulate_gradients, compute_logprobs
from sleuth.training.warm_start import warm_start
from sleuth.types import Question, Segment, Signal, Trajectory
from support import toy

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "peft",
        "sleuth.engines.transformers",
        "sleuth.recipes.evo_rag.preference_model",
        "sleuth.training.loop",
        "torch.distributed.fsdp",
        "transformers.models.llama.modeling_llama",
    ]
)


def on_ranks(count: int, work: Callable[..., Any], *arguments: Any, patience: float = 60) -> list[Any]:
    """Result of `work` on each rank: an exception if it raises, a negative number if a signal ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for rank in range(count):
        mine, other = SERVER.Pipe()
        process = SERVER.Process(target=_enter, args=(rank, count, port, other, work, arguments))
        process.start()
        other.close()
        started.append((process, mine))
    found: list[Any] = []
    for process, mine in started:
        value: Any = TimeoutError(f"no answer after {patience} s")
        if mine.poll(patience):
            try:
                value = pickle.loads(mine.recv_bytes())
            except EOFError:
                process.join()
                value = process.exitcode
        process.kill()
        found.append(value)
    return found


def alone(work: Callable[..., Any], *arguments: Any) -> Any:
    """Result of `work` in one process that torchrun did not start."""
    return on_ranks(1, work, *arguments)[0]


def _enter(
    rank: int, count: int, port: int, answer: Connection, work: Callable[..., Any], arguments: Any
) -> None:
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    os.environ.update({name: str(value) for name, value in places.items()})
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    try:
        with ranks.joined():
            found = work(*arguments)
    except Exception as error:
        found = error
    answer.send_bytes(pickle.dumps(found))
    sys.stdout.flush()
    os._exit(0)


def rollout(question: int, shared: int, turns: Sequence[tuple[int, int]], seed: int) -> Trajectory:
    """Random tokens: a prompt that is the question's, then (policy, world) turns."""

    def draw(count: int, of: int) -> tuple[int, ...]:
        return tuple(torch.randint(0, 18, (count,), generator=torch.Generator().manual_seed(of)).tolist())

    segments = [Segment("prompt", "", draw(shared, 1000 + question))]
    for number, (policy, world) in enumerate(turns):
        segments.append(Segment("policy", "", draw(policy, 10 * seed + number)))
        segments.append(Segment("world", "", draw(world, 10 * seed + number + 5)))
    return Trajectory(Question(f"q{question}", "?", ()), tuple(segments))


RAGGED = [
    *(rollout(0, 20, [(1 + i, 3), (4, 0)], i) for i in range(5)),
    *(rollout(1, 12, [(1, 0)], 10 + i) for i in range(2)),
    rollout(2, 5, [(9, 2), (2, 0)], 20),
]
"""Three questions: five episodes that share a prompt, two of one policy token each, and a single one."""
SIGNALS = [Signal(t, (0.4 * i - 1.1,) * t.response_length) for i, t in enumerate(RAGGED)]


def gradients(shard: bool, lora_rank: int, checkpointing: bool, cases: Sequence[dict[str, Any]]) -> Any:
    """For each case, loss and whole gradient; and how many numbers of the weights this rank holds."""
    forward.PASS = defaultdict(int)  # short prompts are shared
    # Untied, so that the toy's embeddings and output layer have gradients of their own.
    module = toy.model(tie_word_embeddings=False)
    options: dict[str, Any] = {"lora_rank": lora_rank, "gradient_checkpointing": checkpointing}
    policy = Policy(module, precision="float32", shard=shard, **options)
    policy.freeze_reference()
    with torch.no_grad():
        for parameter in policy.trainable_parameters():
            parameter.add_(0.02)
    found = []
    for case in cases:
        policy.forward.share_prefix = case["share_prefix"]
        budget = {"micro_batch_tokens": case["micro_batch_tokens"]}
        old = [values - 0.1 for values in compute_logprobs(policy, RAGGED, **budget)]
        reference = compute_logprobs(policy, RAGGED, reference=True, **budget)
        figures = accumulate_gradients(
            policy, GRPO(beta=0.1), SIGNALS, old_logprobs=old, ref_logprobs=reference, **budget
        )
        flat = [plain(p.grad).flatten() for p in policy.trainable_parameters() if p.grad is not None]
        found.append((figures.loss, figures.kl, figures.policy_tokens, torch.cat(flat).numpy()))
        for parameter in policy.trainable_parameters():
            parameter.grad = None
    held = sum(
        p.to_local().numel() if isinstance(p, DTensor) else p.numel() for p in policy.trained.parameters()
    )
    return found, held


ALGORITHMS = {
    "grpo": GRPO(group_size=4, beta=0.01, num_updates=2),
    "rejection": RejectionSampling(group_size=4, threshold=7.0),
    "dpo": DPO(group_size=4, beta=1.0, update_pairs=2),
}


def new_learner(shard: bool, lora_rank: int = 0) -> tuple[Policy, TransformersEngine]:
    module, hf = toy.model(), toy.tokenizer()
    policy = Policy(module, hf, precision="float32", shard=shard, lora_rank=lora_rank)
    return policy, TransformersEngine(policy.model, hf)


def values(policy: Policy) -> np.ndarray:
    """All weights that the engine samples from."""
    return np.concatenate([p.detach().flatten().numpy() for p in policy.model.parameters()])


def run(folder: Path, options: dict[str, Any]) -> np.ndarray:
    """All weights after a run of the toy.

    The call stops after `until` steps. The second rank is killed at update number `kill`, and its rewards
    raise `fails`.
    """
    options = {"batch": 4} | options
    policy, engine = new_learner(options.pop("shard", False), options.pop("lora_rank", 0))
    if until := options.pop("until", 0):
        done: list[int] = []
        options["evaluate"] = lambda step: done.append(step) or {}  # type: ignore[func-returns-value]
        options |= {"eval_every": 1, "stop": lambda: len(done) >= until}
    if (kill := options.pop("kill", 0)) and not ranks.is_first():
        toy.kill_at("sleuth.training.update.optimiser:Optimiser.step", kill)
    reward = toy.FirstLetter(value=toy.lateness)
    if (error := options.pop("fails", None)) and not ranks.is_first():
        reward = toy.FirstLetter(value=partial(_fail, error))
    toy.run(
        folder,
        setup=toy.parts(ALGORITHMS[options.pop("algorithm", "grpo")], reward),
        learner=(policy, engine),
        **options,
    )
    return values(policy)


def _fail(error: type[Exception], trajectory: Trajectory | None) -> float:
    raise error("the second rank cannot be ignored")


def fail_and_leave_last() -> None:
    """Share an error that the second rank keeps until the first, which has the store, is gone."""
    try:
        ranks.gather(partial(_fail, TrainingError, None))
    finally:
        if not ranks.is_first():
            time.sleep(2)


def fit(folder: Path, shard: bool) -> np.ndarray:
    """All weights after a warm start."""
    policy, _ = new_learner(shard)
    scale = replace(toy.PLAN, warm_start_epochs=2, warm_start_batch=4, warm_start_lr=1e-2)
    with RunLog(folder, console=toy.quiet()) if ranks.is_first() else SilentLog(folder) as log:
        warm_start(policy, RAGGED, scale, log)
    return values(policy)
