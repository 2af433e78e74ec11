"""Without an optional library every encoder says, in one line, what to install."""

import sys

import pytest

from sleuth.encoders import cross_encoder, minilm, sentence
from sleuth.errors import EngineError, RetrievalError
from sleuth.retrievers.dense_index.faiss_index import faiss_module


def test_each_names_its_extra(monkeypatch: pytest.MonkeyPatch):
    for name in ("torch", "transformers", "sentence_transformers", "faiss"):
        monkeypatch.setitem(sys.modules, name, None)
    for module in (minilm, sentence, cross_encoder):
        module.load.cache_clear()
    with pytest.raises(EngineError, match=r"needs .*: pip install '\.\[train\]'"):
        minilm.MiniLM("folder").encode(["x"])
    with pytest.raises(EngineError, match=r"needs .*: pip install '\.\[dense\]'"):
        sentence.SentenceEncoder("some/model").encode(["x"])
    with pytest.raises(EngineError, match=r"needs .*: pip install '\.\[dense\]'"):
        cross_encoder.CrossEncoder("some/model").score([("a", "b")])
    with pytest.raises(RetrievalError, match=r"pip install '\.\[faiss\]'"):
        faiss_module()
