"""Several worker processes on one socket: each opens the index, whose files they share in memory, and serves.

One of them takes each connection. They live and die together: the first one that cannot open the index,
or that ends on its own, ends the others too, so that what supervises the server can start it anew.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess

from sleuth.errors import ConfigError, RetrievalError, SleuthError
from sleuth.retrievers.base import Retriever
from sleuth.serving.limits import Limits
from sleuth.serving.metrics import Metrics, Table
from sleuth.serving.server import GRACE_S, serve

Ready = Callable[[dict[str, str]], None]


@dataclass(frozen=True, slots=True)
class _Worker:
    process: ForkProcess
    told: Connection
    """("ready", identity) or ("failed", reason), once."""


class _TerminatedError(Exception):
    """SIGTERM came."""


def serve_many(
    open_retriever: Callable[[], Retriever],
    listening: socket.socket,
    limits: Limits,
    num_workers: int,
    ready: Ready = lambda _: None,
) -> None:
    """Serve with so many processes until a signal ends it; as `server.serve`, which does it for one.

    The cache is divided among them; every other limit holds for each. Raises RetrievalError if the
    index cannot be opened or a worker ends on its own. Needs a process without threads.
    """
    if num_workers < 1:
        raise ConfigError(f"workers must be at least 1, not {num_workers}")
    if num_workers == 1:
        serve(open_retriever, listening, limits, ready)
        return
    limits = replace(limits, cache_bytes=limits.cache_bytes // num_workers)
    table = Table(num_workers)
    workers: list[_Worker] = []
    # SIGINT too: a shell that starts a server in the background has it ignored from the start.
    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, _stop),
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
    }
    alive, mine = os.pipe()
    try:
        for i in range(num_workers):
            workers.append(_start(open_retriever, listening, limits, Metrics(table, i), (alive, mine)))
        listening.close()
        _watch(workers, ready)
    except _TerminatedError:
        return
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end([worker.process for worker in workers])
        for end in (alive, mine):
            os.close(end)
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(*_: object) -> None:
    raise _TerminatedError


def _start(
    open_retriever: Callable[[], Retriever],
    listening: socket.socket,
    limits: Limits,
    metrics: Metrics,
    life: tuple[int, int],
) -> _Worker:
    context = multiprocessing.get_context("fork")
    told, telling = context.Pipe(duplex=False)

    def work() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        alive, parents = life
        os.close(parents)
        threading.Thread(target=_end_with_parent, args=(alive,), daemon=True).start()
        try:
            serve(open_retriever, listening, limits, lambda who: telling.send(("ready", who)), metrics)
        except SleuthError as error:
            telling.send(("failed", str(error)))
        except KeyboardInterrupt:
            pass  # the terminal sent it to every process; the parent's exit code tells

    process = context.Process(target=work, daemon=True)
    process.start()
    telling.close()
    return _Worker(process, told)


def _end_with_parent(alive: int) -> None:
    """A pipe that nobody ever writes to ends when the parent does, however that happens."""
    os.read(alive, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _watch(workers: Sequence[_Worker], ready: Ready) -> None:
    """Tell when all are ready; return never, but raise when one has failed or ended."""
    opening = [worker.told for worker in workers]
    identities: list[dict[str, str]] = []
    ends = {worker.process.sentinel: worker for worker in workers}
    while True:
        done = wait([*opening, *ends])
        for told in [told for told in opening if told in done]:
            opening.remove(told)
            try:
                kind, what = told.recv()
            except EOFError:
                continue  # it ended without a word, which its sentinel tells
            if kind == "failed":
                raise RetrievalError(what)
            identities.append(what)
            if what != identities[0]:
                raise RetrievalError("the index was changed while workers opened it; start the server again")
            if len(identities) == len(workers):
                ready(what)
        for end, worker in ends.items():
            if end in done:
                worker.process.join()
                raise RetrievalError(f"a worker ended with exit code {worker.process.exitcode}")


def _end(processes: Sequence[ForkProcess]) -> None:
    """Ask all to finish what they have begun, and wait for them."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(GRACE_S + 5)
        if process.exitcode is None:
            process.kill()
            process.join()
