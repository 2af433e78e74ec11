"""What a server did since it started, in Prometheus' text format. Numbers only; no query is kept or shown.

They stand in a table of shared memory, a row for each worker process, which only that worker writes.
Every worker shows the sums over all rows, so that it does not matter which of them is asked.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

PATHS = ("/retrieve", "/health", "/info", "/metrics")
"""The routes; what is asked for elsewhere is counted as "other", since there is no end of it."""

_STATUSES = ("200", "400", "401", "404", "405", "408", "413", "415", "422", "431", "500", "503", "other")
_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the latency histogram."""
_COUNTERS = {
    "queries_total": "queries of accepted requests",
    "cache_hits_total": "queries answered from memory",
    "searched_total": "queries that the retriever searched",
    "batches_total": "calls of the retriever",
}
_GAUGES = {
    "ready": "1 if every worker answers searches",
    "waiting_queries": "queries that wait to be searched",
}
_REQUESTS = [(path, status) for path in (*PATHS, "other") for status in _STATUSES]
_LATENCIES = [*map(str, _BUCKETS_S), "+Inf"]
_COLUMNS: list[object] = [*_REQUESTS, *_COUNTERS, *_GAUGES, *_LATENCIES, "seconds"]
_PLACE = {column: place for place, column in enumerate(_COLUMNS)}
_LATENCY = _PLACE[_LATENCIES[0]]
_SECONDS = _PLACE["seconds"]


class Table:
    """The numbers of several workers, all 0 at first. Made before the processes part, it is theirs together."""

    def __init__(self, num_workers: int) -> None:
        self._memory = memoryview(mmap.mmap(-1, 8 * len(_COLUMNS) * num_workers)).cast("d")
        self.rows = [self._memory[i * len(_COLUMNS) : (i + 1) * len(_COLUMNS)] for i in range(num_workers)]
        """For each worker its numbers, in the order of the columns."""


class Metrics:
    """Counts of one worker, and of all together. Written on its event loop only."""

    def __init__(self, table: Table | None = None, worker: int = 0) -> None:
        """`table`: None = the only worker."""
        self._rows = (table or Table(1)).rows
        self._own = self._rows[worker]

    def add(self, counter: str, number: int = 1) -> None:
        """Count queries, cache hits, searched queries or batches."""
        self._own[_PLACE[counter]] += number

    def set(self, gauge: str, number: float) -> None:
        """What holds right now of "ready" or "waiting_queries"."""
        self._own[_PLACE[gauge]] = number

    def total(self, column: object) -> float:
        """A counter, or a gauge, summed over the workers."""
        place = _PLACE[column]
        return sum(row[place] for row in self._rows)

    @property
    def all_ready(self) -> bool:
        """Whether every worker answers searches."""
        return self.total("ready") == len(self._rows)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """One request to a route, with its status and how long it took until the last byte was handed on."""
        known = _PLACE.get((path, str(status)))
        self._own[_PLACE[path, "other"] if known is None else known] += 1
        if path == "/retrieve" and status == 200:
            self._own[_LATENCY + bisect_left(_BUCKETS_S, seconds)] += 1
            self._own[_SECONDS] += seconds

    def render(self) -> bytes:
        """Everything."""
        lines = [
            "# HELP sleuth_requests_total requests by route and status",
            "# TYPE sleuth_requests_total counter",
        ]
        for path, status in _REQUESTS:
            if count := self.total((path, status)):
                lines.append(f'sleuth_requests_total{{path="{path}",status="{status}"}} {count:.0f}')
        for name, text in _COUNTERS.items():
            lines += [f"# HELP sleuth_{name} {text}", f"# TYPE sleuth_{name} counter"]
            lines.append(f"sleuth_{name} {self.total(name):.0f}")
        for name, text in _GAUGES.items():
            number = float(self.all_ready) if name == "ready" else self.total(name)
            lines += [f"# HELP sleuth_{name} {text}", f"# TYPE sleuth_{name} gauge"]
            lines.append(f"sleuth_{name} {number:.0f}")
        return ("\n".join([*lines, *self._histogram()]) + "\n").encode()

    def _histogram(self) -> list[str]:
        name = "sleuth_retrieve_seconds"
        lines = [f"# HELP {name} time to answer /retrieve with 200", f"# TYPE {name} histogram"]
        total = 0.0
        for bound in _LATENCIES:
            total += self.total(bound)
            lines.append(f'{name}_bucket{{le="{bound}"}} {total:.0f}')
        return [*lines, f"{name}_sum {self.total('seconds'):.6f}", f"{name}_count {total:.0f}"]
