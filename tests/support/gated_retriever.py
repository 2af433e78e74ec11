"""A retriever whose searches wait until the test lets them continue."""

import threading
from collections.abc import Sequence

from sleuth.retrievers.base import Retriever
from sleuth.types import Hit, Passage


class Gated(Retriever):
    """Finds one passage, the query itself with k in its id, as soon as the gate is open; records its calls."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.gate = threading.Event()
        if is_open:
            self.gate.set()
        self.calls: list[tuple[list[str], int]] = []

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        self.calls.append((list(queries), k))
        assert self.gate.wait(30)
        return [[Hit(Passage(f"{query}-{k}", "", query), 1.0)] for query in queries]
