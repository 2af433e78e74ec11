"""VerlEngine: verl's rollout servers as a Sleuth engine; tokens in, tokens out."""

from __future__ import annotations

import asyncio
import copy
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from uuid import uuid4

from sleuth.engines.base import Completion, Engine, Message, Request, Sampling, Tokenizer
from sleuth.engines.decoding.turn import Turn
from sleuth.engines.hf_tokenizer import HFTokenizer

Server = Literal["vllm", "sglang"]
KEEP_STOPS: dict[Server, dict[str, Any]] = {
    "vllm": {"include_stop_str_in_output": True},
    "sglang": {"no_stop_trim": True},
}


class VerlEngine(Engine):
    """Continues the contexts of one episode. Its requests share an id, so that one server keeps their prefix.

    Create it in the event loop of verl's worker, where all its requests run.
    """

    def __init__(
        self,
        manager: Any,
        tokenizer: Tokenizer,
        sampling_params: Mapping[str, Any],
        *,
        server: Server,
        context_length: int,
    ) -> None:
        """`manager` has verl's `generate`; `sampling_params` are those verl gives to an agent loop."""
        self.name = "verl"
        self.tokenizer = tokenizer
        self.context_length = context_length
        self.versions: list[int] = []
        """Training steps of the weights that wrote each completion."""
        self._manager = manager
        self._shared = dict(sampling_params) | KEEP_STOPS[server]
        self._limit = "max_tokens" if server == "vllm" else "max_new_tokens"
        self._id = uuid4().hex
        self._loop = asyncio.get_running_loop()
        end = getattr(getattr(tokenizer, "hf", None), "eos_token_id", None)
        self._eos = () if end is None else (end,)

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        """Continue one context; see Engine. Tokens that a server wrote past a stop string are dropped."""
        turn = Turn(request, sampling, self.context_length, self.tokenizer.decode, self._eos)
        if turn.limit < 1:
            return turn.completion()
        own: dict[str, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            self._limit: turn.limit,
        }
        if sampling.stop:
            own["stop"] = list(sampling.stop)
        written = await self._manager.generate(
            self._id, prompt_ids=list(request.tokens), sampling_params=self._shared | own
        )
        if written.stop_reason == "aborted":
            return Completion((), (), "", (), "", "verl's server aborted the request")
        if (version := written.extra_fields.get("global_steps")) is not None:
            self.versions.append(version)
        logprobs = written.log_probs or [math.nan] * len(written.token_ids)
        for token, logprob in zip(written.token_ids, logprobs, strict=True):
            turn.take(int(token), float(logprob))
            if turn.stop:
                break
        # A server stops by itself at any end token of the model's generation config.
        turn.stop = turn.stop or "eos"
        completion = turn.completion()
        return completion if written.log_probs else replace(completion, logprobs=())

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Completion]:
        """Continue every context, from another thread than the event loop's; see Engine."""
        calls = [
            asyncio.run_coroutine_threadsafe(self.sample(request, sampling), self._loop)
            for request in requests
        ]
        return [call.result() for call in calls]


class SharedTokenizer(HFTokenizer):
    """A tokenizer for the event loop and the threads of rewards; Hugging Face's raise "Already borrowed" there.

    It is a copy, since verl uses the original without this lock.
    """

    def __init__(self, tokenizer: Any) -> None:
        super().__init__(copy.deepcopy(tokenizer))
        self._lock = threading.RLock()

    def encode(self, text: str) -> list[int]:
        with self._lock:
            return super().encode(text)

    def decode(self, tokens: Sequence[int]) -> str:
        with self._lock:
            return super().decode(tokens)

    def chat(self, messages: Sequence[Message]) -> list[int]:
        with self._lock:
            return super().chat(messages)
