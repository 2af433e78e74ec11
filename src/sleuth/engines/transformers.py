"""TransformersEngine: a Hugging Face causal language model as an Engine, on CPU or GPU.

Keys and values stay in a slot cache across turns, shared prefixes are computed once, and every
sample depends on its own seed only. A model whose state is not plain attention over the whole
context runs one sequence at a time: slower, never wrong.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from sleuth.concurrency import Tick
from sleuth.engines.base import Completion, Engine, Request, Sampling
from sleuth.engines.decoding.attention import grouped
from sleuth.engines.decoding.lanes import Lanes, Ticket, deliver
from sleuth.engines.decoding.single_decoder import SingleDecoder
from sleuth.engines.decoding.slot_cache import SlotCache
from sleuth.engines.decoding.slot_decoder import SlotDecoder
from sleuth.engines.decoding.suitability import FULL, SLIDING, config_window, mismatch, unsuited
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.models import load_model, weights_hash
from sleuth.errors import EngineError
from sleuth.memory import free_ram, give_back

MOST_LANES = 4
"""Most decoding threads; more of them would wait for the interpreter lock more than they compute."""


class TransformersEngine(Engine):
    """Continues token contexts with a model held in this process."""

    tokenizer: HFTokenizer

    def __init__(
        self,
        model: nn.Module,
        hf_tokenizer: Any,
        name: str = "",
        *,
        context_length: int | None = None,
        cache_gib: float | None = None,
        autocast: torch.dtype | None = None,
    ) -> None:
        """Wrap a model that may also be in training; it runs in eval mode, and its training flags are restored.

        context_length: tokens; default what the model's config says, never more.
        cache_gib: most memory for keys and values; default a quarter of the machine's free memory,
        on CUDA half of the device's. Room for one context is always made.
        autocast: run the model under torch.autocast with this dtype (weights stay as they are).
        """
        self.model = model
        self.tokenizer = HFTokenizer(hf_tokenizer)
        config: Any = model.config
        self._config = config.get_text_config(decoder=True)
        self.name = name or str(getattr(model.config, "_name_or_path", "")) or type(model).__name__
        self.context_length = _context_length(self._config, hf_tokenizer, context_length)
        self._eos = _eos_ids(model, hf_tokenizer)
        self._autocast = autocast
        self._cache_gib = cache_gib
        self._vocabulary = int(_base(model).get_input_embeddings().num_embeddings)
        parameters = inspect.signature(_base(model).forward).parameters
        self._keeps_last = "logits_to_keep" in parameters
        if "past_key_values" not in parameters:
            raise EngineError(f"model {self.name!r} keeps no key-value cache, which Sleuth needs")
        self._lanes: Lanes | None = None
        self._windows = {FULL: 0}
        self._is_batched = False
        self._budget = 1
        self._version: object = None
        self._opening = threading.Lock()
        self._tick: Tick[Ticket] = Tick(self._submit)

    @classmethod
    def load(
        cls, name: str, *, dtype: str = "auto", device: str = "auto", **options: Any
    ) -> TransformersEngine:
        """The engine of a model by name; see load_model for names, dtype and device."""
        model, tokenizer = load_model(name, dtype, device)
        return cls(model, tokenizer, name, **options)

    @property
    def _device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def _dtype(self) -> torch.dtype:
        return next(self.model.parameters()).dtype

    async def sample(self, request: Request, sampling: Sampling) -> Completion:
        """Continue one context; see Engine. Raises EngineError for a token the model does not have."""
        turn = self._turn(request, sampling, asyncio.get_running_loop())
        if turn.stop:
            return turn.completion()
        self._tick.add(turn)
        try:
            return await cast("asyncio.Future[Completion]", turn.future)
        except asyncio.CancelledError:
            turn.cancelled = True
            raise

    def generate(self, requests: Sequence[Request], sampling: Sampling) -> list[Completion]:
        """Continue every context from plain code; see Engine."""
        turns = [self._turn(request, sampling) for request in requests]
        waiting = [turn for turn in turns if not turn.stop]  # once: a lane sets `stop` before it is idle
        self._submit(waiting)
        try:
            for turn in waiting:
                cast("Future[Completion]", turn.future).result()
        except BaseException:
            for turn in waiting:
                turn.cancelled = True
            raise
        return [turn.completion() for turn in turns]

    def sync(self, policy: Any) -> None:
        """Free what was computed with older weights, once nothing is being decoded; see Engine.

        The engine samples from the module in training itself, so no weights are copied.
        """
        if (version := policy.version) != self._version:
            self._version = version
            self.release()

    def release(self) -> None:
        """Free all keys and values once nothing is being decoded."""
        if self._lanes is not None:
            self._lanes.clear()
        give_back()

    def _turn(
        self, request: Request, sampling: Sampling, loop: asyncio.AbstractEventLoop | None = None
    ) -> Ticket:
        tokens = np.asarray(request.tokens, dtype=np.int64)
        if not tokens.size:
            raise EngineError("cannot continue an empty context")
        wrong = tokens[(tokens < 0) | (tokens >= self._vocabulary)]
        if wrong.size:
            raise EngineError(f"token id {wrong[0]} is not in the model's vocabulary of {self._vocabulary}")
        return Ticket(request, sampling, self.context_length, self.tokenizer.decode, self._eos, loop=loop)

    def _submit(self, turns: Sequence[Ticket]) -> None:
        try:
            with self._opening:
                if self._lanes is None:
                    self._lanes = self._open_lanes()
        except BaseException as error:
            deliver(turns, error)  # coroutines wait for these turns, not for this call
            return
        self._lanes.submit(turns)

    def describe(self) -> dict[str, str]:
        """Also arithmetic and device: the same weights may write other tokens in another arithmetic."""
        arithmetic = str(self._autocast or self._dtype).removeprefix("torch.")
        return super().describe() | {"arithmetic": arithmetic, "device": self._device.type}

    def fingerprint(self) -> str:
        """A hash over a few hundred values of every parameter, which any update of the weights changes."""
        return weights_hash(self.model.named_parameters())

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """The model in eval mode with grouped attention; every training flag is restored after."""
        training = [module for module in self.model.modules() if module.training]
        self.model.eval()
        try:
            with grouped(self._config) if self._is_batched else nullcontext():
                yield
        finally:
            for module in training:
                module.training = True

    @contextmanager
    def _arithmetic(self) -> Iterator[None]:
        """No gradients, and autocast if wanted, for the thread that enters."""
        autocast = torch.autocast(self._device.type, dtype=self._autocast, enabled=self._autocast is not None)
        try:
            with torch.no_grad(), autocast:
                yield
        except torch.OutOfMemoryError as error:
            raise EngineError(f"{self.name}: out of memory; lower cache_gib or the rollout batch") from error

    def _forward(self, ids: Tensor, columns: int = 1, **inputs: Any) -> Any:
        """The model's output; logits of the last columns only, since a prompt's would fill memory."""
        keep = {"logits_to_keep": columns} if self._keeps_last else {}
        return self.model(input_ids=ids, use_cache=True, **inputs, **keep)

    def _forward_slots(self, ids: Tensor, positions: Tensor, cache: SlotCache, columns: int) -> Tensor:
        output = self._forward(
            ids,
            columns,
            position_ids=positions,
            attention_mask=self._masks(positions, cache.get_seq_length()),
            past_key_values=cache,
        )
        logits: Tensor = output.logits[:, -columns:]
        return logits

    def _masks(self, positions: Tensor, length: int) -> Tensor | dict[str, Tensor]:
        """Additive masks [B, 1, S, L] from the queries' positions [B, S]; by layer type if types differ."""
        dtype = self._autocast or self._dtype
        distance = positions[:, None, :, None] - torch.arange(length, device=positions.device)
        masks = {}
        for kind, window in self._windows.items():
            hidden = distance < 0
            if window:
                hidden |= distance >= window
            empty = torch.zeros(hidden.shape, dtype=dtype, device=positions.device)
            masks[kind] = empty.masked_fill_(hidden, torch.finfo(dtype).min)
        return masks if len(masks) > 1 else next(iter(masks.values()))

    def _open_lanes(self) -> Lanes:
        """Decode in slots or one sequence at a time: by config, then by comparing logits once."""
        reason = unsuited(_base(self.model), windows=True)
        if not reason:
            self._windows = _windows(self._config, self.context_length)
            reason = self._mismatch()
        if reason:
            warnings.warn(f"{self.name}: one sequence at a time ({reason})", stacklevel=4)
            return Lanes([SingleDecoder(self._forward, self._device)], 0, self._evaluating, self._arithmetic)
        self._is_batched = True
        threads = torch.get_num_threads() if self._device.type == "cpu" else 0
        count = max(1, min(threads, MOST_LANES))
        decoders = [SlotDecoder(self._forward_slots, self._device) for _ in range(count)]
        for decoder in decoders:
            decoder.budget = max(1, self._budget // count)
        return Lanes(decoders, threads, self._evaluating, self._arithmetic)

    def _mismatch(self) -> str:
        """Why the slot cache does not suit this model; "" if it gives the logits of a plain forward pass."""
        ids = [(7 * i + 3) % self._vocabulary for i in range(13)]
        contexts = [ids[:7], ids[7:]]
        decoder = SlotDecoder(self._forward_slots, self._device)
        with self._evaluating(), self._arithmetic():
            plain = [self._forward(torch.tensor([c], device=self._device)).logits[0, -1] for c in contexts]
            with grouped(self._config):
                dtype = self._autocast or self._dtype
                reason = mismatch("slot cache", lambda: decoder.probe(*contexts), torch.stack(plain), dtype)
        self._budget = max(1, self._cache_bytes() // max(1, decoder.cache.token_bytes()))
        return reason

    def _cache_bytes(self) -> int:
        if self._cache_gib is not None:
            return int(self._cache_gib * 2**30)
        if self._device.type == "cuda":
            return torch.cuda.mem_get_info(self._device)[0] // 2
        return free_ram() // 4


def _base(model: Any) -> Any:
    """The model inside a peft wrapper, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _context_length(config: Any, hf_tokenizer: Any, wanted: int | None) -> int:
    known = getattr(config, "max_position_embeddings", None)
    if known is None and getattr(hf_tokenizer, "model_max_length", 1e30) < 1e9:
        known = hf_tokenizer.model_max_length
    if wanted is not None and wanted < 1:
        raise EngineError(f"context_length must be at least 1, not {wanted}")
    if known is None and wanted is None:
        raise EngineError("the model's config names no context length; give context_length=…")
    return int(min(x for x in (known, wanted) if x is not None))


def _eos_ids(model: Any, hf_tokenizer: Any) -> frozenset[int]:
    """Every id that ends a text: of the generation config and of the tokenizer."""
    generation = getattr(model, "generation_config", None)
    found = getattr(generation, "eos_token_id", None)
    ids = list(found) if isinstance(found, (list, tuple)) else [found]
    return frozenset(int(i) for i in [*ids, hf_tokenizer.eos_token_id] if i is not None)


def _windows(config: Any, context_length: int) -> dict[str, int]:
    """Layer type → how many tokens it looks back, itself included; 0 = all. One entry if all are alike."""
    window = config_window(config)
    window = window if window < context_length else 0
    kinds = set(getattr(config, "layer_types", None) or [SLIDING if window else FULL])
    windows = {kind: window if kind == SLIDING else 0 for kind in sorted(kinds)}
    return windows if any(windows.values()) else {FULL: 0}
