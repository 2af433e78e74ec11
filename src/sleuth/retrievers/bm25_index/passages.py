"""Passages: the passages of an index by id, by row, or all in order."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from tantivy import DocAddress, FieldType, Occur, Order, Query

from sleuth.retrievers.bm25_index.engine import engine_errors, open_searcher
from sleuth.types import Passage

MOST_CLAUSES = 1000  # Rows asked for in one query.


class Passages:
    """Passages of an index as it was when opened. Threads may share it."""

    def __init__(self, directory: str | Path) -> None:
        """RetrievalError if the index is missing, damaged or of another version."""
        self.manifest, self._searcher, self._schema = open_searcher(Path(directory))
        self._where = f"index {str(directory)!r}"
        self._decode = msgspec.json.Decoder(Passage).decode

    def by_id(self, name: str) -> Passage | None:
        """Return the passage with this id, or None. The id is only compared, never read as a path or query."""
        with engine_errors(self._where):
            address = self._address(name)
            return None if address is None else self._stored(address)

    def rows_by_id(self, names: Sequence[str]) -> dict[str, int]:
        """Return the rows of those ids that the index has."""
        with engine_errors(self._where):
            found = {name: address for name in names if (address := self._address(name)) is not None}
            rows = self._searcher.fast_field_values("row", list(found.values()))
            return {name: int(row) for name, row in zip(found, rows, strict=True)}

    def by_row(self, rows: Sequence[int]) -> dict[int, Passage]:
        """Return the passages of those rows that are not deleted, about 20 µs each."""
        found: dict[int, Passage] = {}
        with engine_errors(self._where):
            for start in range(0, len(rows), MOST_CLAUSES):
                some = [int(row) for row in rows[start : start + MOST_CLAUSES]]
                clauses = [(Occur.Should, self._term("row", row, "basic")) for row in some]
                hits = self._searcher.search(Query.boolean_query(clauses), len(some), count=False).hits
                addresses = [address for _, address in hits]
                places = self._searcher.fast_field_values("row", addresses)
                found |= {int(row): self._stored(a) for row, a in zip(places, addresses, strict=True)}
        return found

    def batches(self, size: int = 4096) -> Iterator[dict[int, Passage]]:
        """Yield all passages by row, ascending, those of `size` consecutive rows at a time."""
        for start in range(0, self.manifest.num_rows, size):
            with engine_errors(self._where):
                rows = Query.range_query(
                    self._schema, "row", FieldType.Unsigned, start, start + size, include_upper=False
                )
                found = self._searcher.search(rows, size, count=False, order_by_field="row", order=Order.Asc)
                passages = {int(row): self._stored(address) for row, address in found.hits}
            yield passages

    def _address(self, name: str) -> DocAddress | None:
        name = name.encode("utf-8", "replace").decode()
        if not self._searcher.doc_freq("id", name):  # faster than a search, but counts deleted ones
            return None
        hits = self._searcher.search(self._term("id", name, "basic"), 1, count=False).hits
        return hits[0][1] if hits else None

    def _term(self, field: str, value: str | int, option: str = "freq") -> Query:
        return Query.term_query(self._schema, field, value, option)

    def _stored(self, address: DocAddress) -> Passage:
        return self._decode(self._searcher.doc(address).get_first("passage") or b"")
