"""LangChain and LlamaIndex over the server, where they are installed: `make test-frameworks`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from sleuth.rollouts.store import TrajectoryReader
from sleuth.service.store import episodes_file
from sleuth.types import Exchange
from support.contracts import QUESTION

Serve = Callable[..., Any]
ANSWER, FOLLOW_UP = "Ann Bell [1]", "And where was she born?"


def last_history(served: Any) -> tuple[Exchange, ...]:
    """The conversation that the last stored episode was read with."""
    *_, last = TrajectoryReader(episodes_file(served.store))
    return last.question.history


@pytest.mark.parametrize("responses", [False, True])
def test_langchain(responses: bool, serve: Serve):
    library = pytest.importorskip("langchain_openai", reason="needs langchain-openai")
    served = serve()
    options = {"base_url": f"{served.url}/v1", "api_key": "none", "use_responses_api": responses}
    model = library.ChatOpenAI(model="contracts", **options)
    first = model.invoke([("system", "Be brief."), ("user", QUESTION)])
    assert str(first.text) == ANSWER
    assert "".join(str(chunk.text) for chunk in model.stream(QUESTION)) == ANSWER
    assert str(asyncio.run(model.ainvoke(QUESTION)).text) == ANSWER
    model.invoke([("user", QUESTION), first, ("user", FOLLOW_UP)])
    assert last_history(served) == (Exchange(QUESTION, "Ann Bell"),)
    if responses:
        cited = next(part for part in first.content if part["type"] == "text")["annotations"]
        assert cited[0]["quote"] == "Ann Bell signed the 2019 contract."


def test_llama_index(serve: Serve):
    library = pytest.importorskip("llama_index.llms.openai_like", reason="needs llama-index-llms-openai-like")
    from llama_index.core.chat_engine import SimpleChatEngine

    served = serve()
    model = library.OpenAILike(
        api_base=f"{served.url}/v1", api_key="none", model="contracts", is_chat_model=True
    )
    assert str(model.complete(QUESTION)) == ANSWER
    assert "".join(part.delta for part in model.stream_complete(QUESTION)) == ANSWER
    assert str(asyncio.run(model.acomplete(QUESTION))) == ANSWER
    chat = SimpleChatEngine.from_defaults(llm=model, system_prompt="Be brief.")
    assert str(chat.chat(QUESTION)) == ANSWER
    assert "".join(chat.stream_chat(FOLLOW_UP).response_gen) == ANSWER
    assert last_history(served) == (Exchange(QUESTION, "Ann Bell"),)
