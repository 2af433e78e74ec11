"""LLMLingua-2's place among the retrievers; its package is replaced by one that keeps every other word."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from sleuth.errors import ConfigError, EngineError
from sleuth.retrievers.given import GivenParagraphs
from sleuth.retrievers.llmlingua import LLMLingua2
from sleuth.types import Passage, Question


class HalfOfTheWords:
    def __init__(self, model: str, use_llmlingua2: bool) -> None:
        assert use_llmlingua2
        if model == "nowhere":
            raise OSError("no such model")

    def compress_prompt_llmlingua2(self, texts: list[str], rate: float) -> dict[str, Any]:
        return {"compressed_prompt": " ".join(" ".join(texts).split()[::2])}


QUESTION = Question(
    "q", "tea?", ("a",), (Passage("p", "Tea", "a hot drink"), Passage("o", "", "more tea here"))
)


def test_all_that_was_found_becomes_one_passage(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "llmlingua", SimpleNamespace(PromptCompressor=HalfOfTheWords))
    own = LLMLingua2(GivenParagraphs()).for_question(QUESTION)
    found, nothing = own.search(["tea", "zebra"], 5)
    assert [hit.passage for hit in found] == [Passage("compressed", "", "more here a drink")]
    assert nothing == []
    assert own.identity()["of.retriever"]
    with pytest.raises(EngineError, match="nowhere cannot be loaded: no such model"):
        LLMLingua2(GivenParagraphs(), "nowhere").open()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "llmlingua", None)
    with pytest.raises(ConfigError, match=r"pip install 'sleuth-rag\[llmlingua\]'"):
        LLMLingua2(GivenParagraphs()).open()
