"""LangChain and LlamaIndex over the server, where they are installed; run with langchain-openai 1.7 and llama-index 0.14."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.contracts import QUESTION

Serve = Callable[..., Any]


@pytest.mark.parametrize("responses", [False, True])
def test_langchain(responses: bool, serve: Serve):
    library = pytest.importorskip("langchain_openai", reason="needs langchain-openai")
    options = {"base_url": f"{serve().url}/v1", "api_key": "none", "use_responses_api": responses}
    model = library.ChatOpenAI(model="contracts", **options)
    assert str(model.invoke(QUESTION).text) == "Ann Bell [1]"
    assert "".join(str(chunk.text) for chunk in model.stream(QUESTION)) == "Ann Bell [1]"


def test_llama_index(serve: Serve):
    library = pytest.importorskip("llama_index.llms.openai_like", reason="needs llama-index-llms-openai-like")
    model = library.OpenAILike(
        api_base=f"{serve().url}/v1", api_key="none", model="contracts", is_chat_model=True
    )
    assert str(model.complete(QUESTION)) == "Ann Bell [1]"
    assert "".join(part.delta for part in model.stream_complete(QUESTION)) == "Ann Bell [1]"
