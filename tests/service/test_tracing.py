"""OpenTelemetry spans of served episodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from support.contracts import QUESTION, agent_that

Serve = Callable[..., Any]


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Any:
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="needs opentelemetry-sdk")
    export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    exporter, provider = export.InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr("sleuth.service.tracing.trace.get_tracer", provider.get_tracer)
    return exporter.get_finished_spans


def test_an_episode_has_a_span_with_its_searches_and_turns(serve: Serve, spans: Any):
    httpx.post(
        f"{serve().url}/v1/responses", json={"model": "contracts", "input": QUESTION}
    ).raise_for_status()
    found = {span.name: span for span in spans()}
    assert [span.name for span in spans()] == [
        "chat scripted",
        "execute_tool search",
        "chat scripted",
        "invoke_agent contracts",
    ]
    agent = found["invoke_agent contracts"]
    assert agent.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert agent.attributes["gen_ai.usage.output_tokens"] == 142
    assert agent.attributes["sleuth.status"] == "supported"
    assert found["execute_tool search"].parent.span_id == agent.context.span_id
    assert QUESTION not in str([span.attributes for span in spans()])


def test_a_failed_episode_ends_its_spans_with_the_error(serve: Serve, spans: Any):
    url = serve({"contracts": agent_that([])}).url
    httpx.post(f"{url}/v1/responses", json={"model": "contracts", "input": QUESTION})
    (span,) = spans()
    assert span.attributes["error.type"] == "EngineError"
