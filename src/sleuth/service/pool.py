"""AgentPool: the agents of a server by name, a bounded number of episodes at a time, and their metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import prometheus_client as prometheus

from sleuth.agent import Agent, Reply
from sleuth.checked import Checked, Positive, PositiveFloat
from sleuth.episodes.events import Event, Found, Writing
from sleuth.registry import nearest
from sleuth.service.tracing import Trace, usage
from sleuth.service.wire import AgentRequest
from sleuth.serving.replies import RequestError

EPISODES = prometheus.Counter("sleuth_episodes", "episodes by model and outcome", ("model", "outcome"))
SECONDS = prometheus.Histogram(
    "sleuth_episode_seconds",
    "time of an episode from its start to the checked answer",
    ("model",),
    buckets=(0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0),
)
FIRST = prometheus.Histogram("sleuth_first_text_seconds", "time to the first text of the model", ("model",))
TOKENS = prometheus.Counter("sleuth_tokens", "tokens of episodes, read or written", ("model", "kind"))
SEARCHES = prometheus.Counter("sleuth_episode_searches", "searches of episodes", ("model",))
RUNNING = prometheus.Gauge("sleuth_running_episodes", "episodes being played")
QUEUED = prometheus.Gauge("sleuth_queued_episodes", "requests waiting for a slot")


@dataclass(frozen=True, slots=True)
class Limits(Checked):
    """Settings of a server."""

    max_running: Positive = 16
    """Episodes played at a time; an embedded model shares its cores among them."""
    max_waiting: Positive = 1000
    """Requests waiting for a slot beyond which a request gets 429."""
    timeout_s: PositiveFloat = 300.0
    """Seconds from a request to the end of its reply, the wait for a slot included."""
    max_body_bytes: Positive = 1 << 20
    """Largest request body in bytes."""
    token: str = field(default="", repr=False)
    """Bearer token that clients must send, visible ASCII characters; "" disables the check."""


class AgentPool:
    """Answers requests by the agent that they name. One event loop."""

    def __init__(self, agents: Mapping[str, Agent], limits: Limits) -> None:
        self.agents = dict(agents)
        self.limits = limits
        self.began = int(time.time())
        self._slots = asyncio.Semaphore(limits.max_running)
        self._waiting = 0

    def agent(self, request: AgentRequest) -> Agent:
        """The agent of a request. Raises RequestError 404 for another name, 429 if too many requests wait."""
        if request.model not in self.agents:
            raise RequestError(404, f"unknown model {request.model!r}{nearest(request.model, self.agents)}")
        if self._waiting >= self.limits.max_waiting:
            raise RequestError(429, f"too busy: {self._waiting} requests are waiting; try again")
        agent = self.agents[request.model]
        most = request.most_tokens
        if most is not None and most < agent.recipe.scale.max_new_tokens:
            agent = replace(agent, recipe=agent.recipe.sized(max_new_tokens=most))
        return agent

    async def play(self, agent: Agent, request: AgentRequest) -> AsyncGenerator[Event | Reply, None]:
        """The events of the request's episode, the Reply as the last.

        Closing it frees the slot. Raises RequestError 503 after the deadline, and what Agent.stream raises.
        """
        outcome, deadline = "cancelled", asyncio.get_running_loop().time() + self.limits.timeout_s
        try:
            async with asyncio.timeout_at(deadline):
                await self._wait()
            async with aclosing(self._counted(agent, request)) as events:
                try:
                    while True:
                        async with asyncio.timeout_at(deadline):
                            event = await anext(events)
                        outcome = event.cited.status if isinstance(event, Reply) else outcome
                        yield event
                except StopAsyncIteration:
                    return
                finally:
                    RUNNING.dec()
                    self._slots.release()
        except TimeoutError as error:
            outcome = "timeout"
            reason = f"not answered within {self.limits.timeout_s:g} s; try again"
            raise RequestError(503, reason) from error
        except Exception:
            outcome = "failed"
            raise
        finally:
            EPISODES.labels(request.model, outcome).inc()

    async def _wait(self) -> None:
        self._waiting += 1
        QUEUED.set(self._waiting)
        try:
            await self._slots.acquire()
            RUNNING.inc()
        finally:
            self._waiting -= 1
            QUEUED.set(self._waiting)

    async def _counted(self, agent: Agent, request: AgentRequest) -> AsyncGenerator[Event | Reply, None]:
        name, began, is_silent = request.model, time.perf_counter(), True
        stream = agent.stream(
            request.question, history=request.history, sampling=request.sampling, seed=request.sample_seed
        )
        with Trace(name, agent.engine.name) as trace:
            async with aclosing(stream) as events:
                async for event in events:
                    trace.add(event)
                    if is_silent and isinstance(event, Writing):
                        is_silent = False
                        FIRST.labels(name).observe(time.perf_counter() - began)
                    elif isinstance(event, Found):
                        SEARCHES.labels(name).inc()
                    elif isinstance(event, Reply):
                        SECONDS.labels(name).observe(time.perf_counter() - began)
                        for kind, count in usage(event).items():
                            TOKENS.labels(name, kind).inc(count)
                    yield event
