"""Ranks: the processes that `torchrun` starts on one machine to train one policy.

Every rank runs the same program on the same questions and reaches the same decisions. Episodes and
gradients are divided (`share`, `sum_gradients`), and results are exchanged (`gather`); files are
written once (`first`). A process that torchrun did not start is the only rank, and nothing is exchanged.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from sleuth.errors import ConfigError, RankError, SleuthError, TrainingError
from sleuth.scale import Scale

if TYPE_CHECKING:
    from torch.nn import Parameter

T = TypeVar("T")

WAIT = timedelta(hours=6)
"""Longest wait for a rank that lives but does not answer; others wait for the first one's evaluations."""

_group = {"rank": 0, "count": 1}


class RankLostError(TrainingError):
    """Another rank ended or did not answer; nothing can be exchanged any more."""


def count() -> int:
    """Number of ranks; 1 without torchrun."""
    return _group["count"]


def is_first() -> bool:
    """Whether this is the rank that writes and prints."""
    return _group["rank"] == 0


def share(items: Sequence[T], costs: Sequence[float] = ()) -> list[T]:
    """This rank's part of `items`, in order; parts have about the same sum of costs, or length if there are none."""
    costs = costs or [1.0] * len(items)
    ends, total = itertools.accumulate(costs), sum(costs)
    middles = [end - cost / 2 for end, cost in zip(ends, costs, strict=True)]
    return [
        item
        for item, middle in zip(items, middles, strict=True)
        if int(count() * middle / total) == _group["rank"]
    ]


def gather(work: Callable[[], T]) -> list[T]:
    """Results of `work` of every rank, in order. An error on one rank is raised on all."""
    if count() == 1:
        return [work()]
    import torch.distributed as dist

    value, failure = None, None
    try:
        value = work()
    except RankLostError:
        raise
    except Exception as error:
        failure = error
    found: list[Any] = [None] * count()
    with _named_loss():
        dist.all_gather_object(found, (value, failure and _portable(failure)))
    for each in (failure, *(other for _, other in found)):
        if each is not None:
            raise each
    return [result for result, _ in found]


def first(work: Callable[[], T]) -> T:
    """Result of `work` on the first rank, on every rank; the others wait for it."""
    return gather(lambda: work() if is_first() else None)[0]  # type: ignore[return-value]


def first_then_others(work: Callable[[], T]) -> T:
    """Result of `work`, which the others begin when the first rank is done, so that it may fill a cache."""
    if not is_first():
        gather(lambda: None)
        return work()
    return gather(work)[0]


def sum_gradients(parameters: Sequence[Parameter]) -> None:
    """Replace each gradient by its sum over the ranks; a rank that computed none adds zeros."""
    if count() == 1:
        return
    import torch
    import torch.distributed as dist

    with _named_loss():
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        for work in [dist.all_reduce(p.grad, async_op=True) for p in parameters]:
            work.wait()


def check(plan: Scale) -> None:
    """Raise ConfigError for a batch that ranks cannot divide, frozen layers that they divide, and vLLM on several."""
    if plan.batch % count():
        raise ConfigError(
            f"scale.batch = {plan.batch} questions cannot be divided among {count()} ranks: "
            "set scale.batch to a multiple"
        )
    if count() > 1 and plan.shard and plan.frozen_layers:
        raise ConfigError("layers that are divided among ranks cannot be frozen: set scale.frozen_layers=0")
    if count() > 1 and plan.engine == "vllm":
        raise ConfigError(
            "scale.engine='vllm' does not share a process with torchrun's group: leave one of them out, or start "
            "vLLM as a server (scale.engine=vllm:http://…)"
        )


@contextmanager
def joined() -> Iterator[None]:
    """Join the other ranks if torchrun started this process.

    An error is raised unchanged on one rank, which prints it, and as RankError on the others. Raises
    ConfigError for several machines, and for more ranks than GPUs where there are any.
    """
    total = int(os.environ.get("WORLD_SIZE", "1")) if "RANK" in os.environ else 1
    if total == 1:
        yield
        return
    import torch
    import torch.distributed as dist

    # Its default arguments keep the group that exists when it is imported. After the group's start that would leave
    # gloo's threads alive at exit, where one that frees its last tensors aborts the process.
    import torch.distributed.nn

    store = next(dist.rendezvous("env://"))[0]  # type: ignore[attr-defined]
    try:
        gpus = torch.cuda.device_count()
        _check_machine(total, gpus)
        if gpus:
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        rank = int(os.environ["RANK"])
        backend = "cpu:gloo,cuda:nccl" if gpus else "gloo"
        dist.init_process_group(backend, store=store, rank=rank, world_size=total, timeout=WAIT)
        _group.update(rank=rank, count=total)
        with _named_loss():
            yield
            # Ranks end together, after the first one's evaluation. Where layers are divided, DTensor's caches keep the
            # group and its threads. A thread that frees its last tensors while Python ends aborts its rank, and
            # torchrun then ends all.
            dist.barrier()
    except (SleuthError, KeyboardInterrupt) as error:
        try:
            is_named = store.add("sleuth-errors", 1) > 1
        except RuntimeError:  # the rank that keeps the store has ended, after it printed a shared error
            is_named = not isinstance(error, RankLostError)
        if is_named:
            raise RankError(f"another rank failed: {error}") from error
        raise
    finally:
        _group.update(rank=0, count=1)
    dist.destroy_process_group()  # after an error it would wait for the others


def _check_machine(total: int, gpus: int) -> None:
    local = int(os.environ.get("LOCAL_WORLD_SIZE", total))
    if local != total:
        raise ConfigError(
            f"{total} ranks, of which {local} are on this machine: Sleuth trains on one machine"
        )
    if 0 < gpus < total:
        raise ConfigError(f"{total} ranks need {total} GPUs, and there are {gpus}: lower --nproc_per_node")


@contextmanager
def _named_loss() -> Iterator[None]:
    """Raise what gloo or NCCL raises when a rank is gone as RankLostError."""
    import torch.distributed as dist

    try:
        yield
    except RuntimeError as error:
        if isinstance(error, dist.DistError) or "gloo" in str(error):
            reason = str(error).splitlines()[0].partition(". ")[0]
            raise RankLostError(
                f"another rank ended or does not answer ({reason}); "
                "the same command continues from the last checkpoint"
            ) from error
        raise


def _portable(error: Exception) -> Exception:
    """The error for other ranks: one of Sleuth's as it is, any other as the loss of its rank."""
    if type(error).__module__.startswith("sleuth."):
        return error
    return RankLostError(f"another rank failed: {type(error).__name__}: {error}")
