"""LLMLingua2: another retriever's passages, shortened to one text by a token classifier (extra `llmlingua`).

Pan et al. 2024, through the authors' package. A baseline of EviOmni's Table 4, where a reader reads the text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

from msgspec import Meta

from sleuth.checked import Checked, NonEmpty
from sleuth.errors import ConfigError, EngineError
from sleuth.retrievers.base import Around, Retriever
from sleuth.retrievers.bm25 import BM25
from sleuth.types import Hit, Passage, Question


@dataclass(frozen=True)
class LLMLingua2(Checked, Around):
    """One compressed passage in place of all that were found."""

    retriever: Retriever = field(default_factory=BM25)
    model: NonEmpty = "microsoft/llmlingua-2-xlm-roberta-large-meetingbank"
    rate: Annotated[float, Meta(gt=0, le=1)] = 1 / 4.5
    """Share of the tokens that is kept; the default is the published compression ratio (Table 4)."""

    def open(self) -> None:
        super().open()
        _ = self._compressor

    def search(self, queries: Sequence[str], k: int) -> list[list[Hit]]:
        """For each query one passage, or none where nothing was found."""
        found = self.retriever.search(queries, k)
        return [[Hit(self._compressed(hits), 0.0)] if hits else [] for hits in found]

    def for_question(self, question: Question) -> Retriever:
        chosen = self.retriever.for_question(question)
        if chosen is self.retriever:
            return self
        own = replace(self, retriever=chosen)
        own.__dict__["_compressor"] = self._compressor  # one model for all questions
        return own

    def identity(self) -> dict[str, str]:
        return {
            "retriever": "llmlingua-2",
            "model": self.model,
            "rate": str(self.rate),
        } | self.inner_identity()

    def _compressed(self, hits: Sequence[Hit]) -> Passage:
        texts = [f"{hit.passage.title}: {hit.passage.text}".lstrip(": ") for hit in hits]
        made = self._compressor.compress_prompt_llmlingua2(texts, rate=self.rate)
        return Passage("compressed", "", str(made["compressed_prompt"]))

    @cached_property
    def _compressor(self) -> Any:
        try:
            from llmlingua import PromptCompressor
        except ImportError:
            raise ConfigError(
                "LLMLingua-2 needs the package llmlingua: pip install 'sleuth-rag[llmlingua]'"
            ) from None
        try:
            return PromptCompressor(self.model, use_llmlingua2=True)
        except Exception as error:  # the package raises whatever its model hub raises
            raise EngineError(f"{self.model} cannot be loaded: {error}") from error
