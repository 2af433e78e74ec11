"""What a server did since it started, in Prometheus' text format. Counters only; no query is kept or shown."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the latency histogram."""
_HELP = {
    "queries_total": "queries of accepted requests",
    "cache_hits_total": "queries answered from memory",
    "searched_total": "queries that the retriever searched",
    "batches_total": "calls of the retriever",
}


class Metrics:
    """Counts of one server. Used on its event loop only."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """By the names of queries, cache hits, searched queries and batches."""
        self._requests: Counter[tuple[str, int]] = Counter()
        self._slower = [0] * (len(_BUCKETS_S) + 1)
        self._seconds = 0.0

    def answered(self, path: str, status: int, seconds: float) -> None:
        """One request to a route, with its status and how long it took until the last byte was handed on."""
        self._requests[path, status] += 1
        if path == "/retrieve" and status == 200:
            self._slower[bisect_left(_BUCKETS_S, seconds)] += 1
            self._seconds += seconds

    def render(self, gauges: Mapping[str, float]) -> bytes:
        """Everything, with what holds right now."""
        lines = [
            "# HELP sleuth_requests_total requests by route and status",
            "# TYPE sleuth_requests_total counter",
        ]
        for (path, status), count in sorted(self._requests.items()):
            lines.append(f'sleuth_requests_total{{path="{path}",status="{status}"}} {count}')
        for name, text in _HELP.items():
            lines += [f"# HELP sleuth_{name} {text}", f"# TYPE sleuth_{name} counter"]
            lines.append(f"sleuth_{name} {self.counts[name]}")
        for name, value in gauges.items():
            lines += [f"# TYPE sleuth_{name} gauge", f"sleuth_{name} {value:g}"]
        return ("\n".join([*lines, *self._histogram()]) + "\n").encode()

    def _histogram(self) -> list[str]:
        name = "sleuth_retrieve_seconds"
        lines = [f"# HELP {name} time to answer /retrieve with 200", f"# TYPE {name} histogram"]
        total = 0
        for bound, count in zip([*map(str, _BUCKETS_S), "+Inf"], self._slower, strict=True):
            total += count
            lines.append(f'{name}_bucket{{le="{bound}"}} {total}')
        return [*lines, f"{name}_sum {self._seconds:.6f}", f"{name}_count {total}"]
