"""Dense: passages whose vectors are nearest to the query's, from an index made by dense_index.build."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sleuth.checked import Checked, NonNegative
from sleuth.encoders.base import Encoder, agree, probe, unpacked
from sleuth.encoders.by_name import open_encoder
from sleuth.errors import RetrievalError
from sleuth.retrievers.base import OnDisk, check_k, check_queries
from sleuth.retrievers.dense_index.index import OpenDense
from sleuth.text import valid_unicode
from sleuth.types import Hit


@dataclass(frozen=True)
class Dense(Checked, OnDisk):
    """Inner product of query and passage vectors, exact or approximate as the index was built.

    Index and encoder stay as they were when opened. Two Dense are equal if their settings are.
    """

    encoder: Encoder | None = None
    """None = the encoder that the index names."""
    nprobe: NonNegative = 0
    """Lists probed per query by an approximate index, more find more; 0 = as the build chose."""

    def open(self) -> None:
        _ = self._encoder

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        k, queries = check_k(k), check_queries(queries)
        asked = [valid_unicode(query) for query in queries if query.strip()]
        if not asked:
            return [[] for _ in queries]
        found = iter(self._index.find(self._encoder.encode_queries(asked), k, self.nprobe))
        return [next(found) if query.strip() else [] for query in queries]

    def identity(self) -> dict[str, str]:
        manifest = self._index.manifest
        return {
            "retriever": "dense",
            "encoder": f"{manifest.encoder}/{manifest.encoder_fingerprint}",
            "backend": manifest.backend,
            "engine_version": manifest.engine_version,
            "nprobe": str(self.nprobe or manifest.nprobe),
            "num_passages": str(manifest.num_passages),
            "index": manifest.sha256,
        }

    @cached_property
    def _index(self) -> OpenDense:
        if not self.path:
            raise RetrievalError("no index given: pass --index DIR, built by 'sleuth index --dense minilm'")
        return OpenDense(Path(self.path))

    @cached_property
    def _encoder(self) -> Encoder:
        """The encoder, after checking that it gives the vectors of the one that made the index."""
        manifest = self._index.manifest
        encoder = self.encoder or open_encoder(manifest.encoder)
        if not agree(probe(encoder), unpacked(manifest.encoder_probe)):
            raise RetrievalError(
                f"index {self.path!r} was made by another encoder than this {encoder.name!r} "
                f"(by {manifest.encoder!r}, {manifest.encoder_fingerprint}); build the vectors again"
            )
        return encoder
