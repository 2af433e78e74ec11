"""Peak memory of a training run, forecast before any weight is loaded.

The largest passes of the run are made on a model without values (FakeTensorMode): every operation gives
shapes only, and the bytes of all tensors that are alive at once are counted. What stays between the
passes is added by `forecast_memory`. The equation is in docs/scale.md.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from sleuth.algorithms.base import Algorithm
from sleuth.engines.decoding.suitability import unsuited
from sleuth.engines.models import load_outline, pick_device
from sleuth.engines.vllm import CPU_CACHE_GIB as VLLM_CACHE_GIB
from sleuth.errors import ConfigError
from sleuth.memory import free_ram
from sleuth.scale import Scale
from sleuth.training.parallel import ranks
from sleuth.training.policy import Policy, arithmetic_dtype
from sleuth.training.sampler import CPU_CACHE_GIB, sampler_name
from sleuth.training.update.forward import Forward
from sleuth.training.update.layout import Row

PREFILL = 4096
"""Tokens of prompts that the engine computes in one pass."""
GROWTH = 1.5
"""A cache that doubles its capacity holds the old half until it is copied."""
HEAP, HEAP_LORA = 1.3, 1.8
"""Heap of the C library that passes take on CPU, as a multiple of their tensors: it cannot reuse every gap. The second
is for float32 passes with adapters, whose small tensors lie between the large ones (measured, docs/scale.md)."""
FLOAT, HALF = 4, 2
MOMENTS = 8
"""Bytes of AdamW's two moments for each trainable parameter."""
LORA_RANK = 16
"""Adapters that a refused run is advised to use."""


class Need(NamedTuple):
    """Bytes that are held at once on one rank, in each phase of a step."""

    rollouts: float
    update: float
    saving: float
    """Writing the model at the end; with adapters a merged copy."""

    @property
    def peak(self) -> float:
        return max(self)


class Passes(NamedTuple):
    """Bytes of the largest passes, without weights and gradients."""

    update: float
    """Activations, their gradients, logits, and with autocast a bfloat16 copy of the weights."""
    prefill: float
    cache_token: float
    """Keys and values of one token in all layers."""


class Shape(NamedTuple):
    """Rows of one forward-backward pass."""

    prompt: int
    """Tokens of a prefix that the rows share; 0 = plain rows."""
    rows: int
    width: int
    """Tokens of a row after the prefix."""
    targets: int
    """Policy tokens of a row."""


class Outline:
    """The policy of a plan as shapes without values: made from its config in a moment, for models of any size."""

    def __init__(self, plan: Scale) -> None:
        """Read config and tokenizer of plan.model. Raises EngineError in one line."""
        self.model, self.tokenizer = load_outline(plan.model)
        self.device = pick_device("auto")
        self.dtype = arithmetic_dtype(plan.precision, self.device)
        """Arithmetic of the passes: bfloat16, or None for float32."""
        self.policy = Policy(
            self.model,
            self.tokenizer,
            lora_rank=plan.lora_rank,
            gradient_checkpointing=plan.gradient_checkpointing,
        )
        if plan.frozen_layers and not plan.warm_start_examples:  # a warm start trains all layers
            self.policy.freeze_layers(plan.frozen_layers)
        self.parameters = sum(p.numel() for p in self.policy.model.parameters())
        self.trainable = sum(p.numel() for p in self.policy.trainable_parameters())

    @property
    def gathered(self) -> int:
        """Parameters that FSDP gathers around a pass: the embeddings and, while one is prefetched, two layers twice."""
        base: Any = self.policy.causal_lm
        layers = list(base.get_decoder().layers)
        largest: int = max(sum(p.numel() for p in layer.parameters()) for layer in layers)
        return self.parameters - len(layers) * largest + 2 * largest


class Live(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the bytes of all storages that are alive, and their peak."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        tree_map_only(Tensor, self._count, out)
        return out

    def _count(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._known:
            self._known.add(key)
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self._drop, key, storage.nbytes())

    def _drop(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.now -= size


def largest_shapes(plan: Scale, samples: int, prompt: int, *, shares: bool = True) -> tuple[Shape, ...]:
    """The passes of an update that can take most memory, within the recipe's limits.

    One has as many rows as a question has `samples`, each attending to its own copy of the prompt; the
    other has the longest rows. `prompt`: tokens of a demonstration's; `shares`: whether rows may share it.
    """
    turn = plan.max_new_tokens + plan.max_passage_tokens
    longest = min(plan.max_context, prompt + (plan.max_steps + 1) * turn)
    prompt = min(prompt, longest - 1) if shares else 0
    most, free = longest - prompt, max(1, plan.micro_batch_tokens - prompt)
    few = max(1, min(samples, free // most))
    many = max(1, min(samples, free))
    pairs = {(few, most), (many, max(1, min(most, free // many)))}
    written = plan.max_steps * plan.max_new_tokens
    return tuple(
        Shape(
            prompt if rows > 1 else 0, rows, width if rows > 1 else longest, max(1, min(written, width - 1))
        )
        for rows, width in sorted(pairs)
    )


def measure_passes(outline: Outline, shapes: tuple[Shape, ...]) -> Passes:
    """Make the passes without values and count. Raises RuntimeError for a model whose code needs the values."""
    policy, dtype = outline.policy, outline.dtype
    with FakeTensorMode(allow_non_fake_inputs=True), Live() as live:
        _move(policy.model, outline.device)
        forward = Forward(policy.causal_lm, dtype, policy.forward.gradient_checkpointing)
        forward.skip_trials()
        prefill, cache_token = _prefill(forward, live)
        for parameter in policy.trainable_parameters():
            parameter.grad = torch.zeros_like(parameter)
        before, update = live.now, 0
        for shape in shapes:
            live.peak = live.now
            _update(forward, shape)
            update = max(update, live.peak - before)
    heap = 1.0 if outline.device.type == "cuda" else HEAP_LORA if policy.lora_rank and not dtype else HEAP
    return Passes(heap * update, heap * prefill, cache_token)


def _move(model: nn.Module, device: torch.device) -> None:
    """Give `model`, whose tensors are on the meta device, tensors of the same shapes on `device`; tied ones once."""
    made: dict[int, nn.Parameter] = {}
    for module in model.modules():
        for name, old in [*module.named_parameters(recurse=False)]:
            if id(old) not in made:
                fresh = torch.empty(old.shape, dtype=old.dtype, device=device)
                made[id(old)] = nn.Parameter(fresh, old.requires_grad)
            setattr(module, name, made[id(old)])
        for name, buffer in [*module.named_buffers(recurse=False)]:
            setattr(module, name, torch.empty(buffer.shape, dtype=buffer.dtype, device=device))


def _prefill(forward: Forward, live: Live) -> tuple[float, float]:
    """Bytes of a pass over prompts without gradients, and of one token's keys and values."""
    before = live.peak = live.now
    with torch.no_grad():
        prefix = forward.prefix([0] * PREFILL)
    held = sum(keys.numel() + values.numel() for keys, values in prefix.keys_values)
    return live.peak - before, (HALF if forward.autocast_dtype else FLOAT) * held / PREFILL


def _update(forward: Forward, shape: Shape) -> None:
    """One forward-backward pass, as `accumulate_gradients` makes it."""
    length = shape.prompt + shape.width
    row = Row(0, (0,) * length, tuple(range(length - shape.targets, length)))
    prefix = forward.prefix(row.tokens[: shape.prompt]) if shape.prompt else None
    leaves = prefix.leaves() if prefix else None
    figures = forward.tokens([row] * shape.rows, leaves, 1.0)
    figures.logprobs_M.sum().backward()  # type: ignore[no-untyped-call]
    if prefix and leaves:
        prefix.backward(leaves)


def forecast_memory(
    plan: Scale, algorithm: Algorithm, outline: Outline, free: float, prompt: int = 0
) -> Need:
    """Bytes that one rank holds at once. `free`: bytes of the device before the run, of which vLLM takes a share.

    The process itself is not in it, nor are judges and encoders.
    """
    shares = not plan.gradient_checkpointing and not unsuited(outline.model, windows=False)
    samples = max(algorithm.group_size, plan.warm_start_batch)
    shapes = largest_shapes(plan, samples, prompt, shares=shares)
    passes = measure_passes(outline, shapes)
    has_reference = plan.steps > 0 and (plan.guards or algorithm.needs_reference)
    weights, trainable = FLOAT * outline.parameters, outline.trainable
    kept = weights + (MOMENTS + FLOAT * has_reference) * trainable
    whole, divided = (weights, ranks.count()) if plan.shard and ranks.count() > 1 else (0, 1)
    update = (kept + FLOAT * trainable) / divided + passes.update
    if divided > 1:
        update += 2 * FLOAT * outline.gathered
    sampler, stays = _sampler(plan, outline, passes, free, shapes)
    saving = 2 * weights + FLOAT * has_reference * trainable if plan.lora_rank else 0
    return Need(kept / divided + whole + sampler + stays, update + stays, saving + stays)


def _sampler(
    plan: Scale, outline: Outline, passes: Passes, free: float, shapes: tuple[Shape, ...]
) -> tuple[float, float]:
    """Bytes of the engine during rollouts, and those that it keeps during updates; a server's are not ours."""
    engine = sampler_name(plan.engine, outline.device.type)
    if engine.startswith("vllm:"):
        return 0, 0
    on_cuda = outline.device.type == "cuda"
    weights = FLOAT * outline.parameters
    half = max(0.0, free - weights) / 2
    if engine == "vllm":
        copy = (HALF if outline.dtype else FLOAT) * outline.parameters
        return (half, 0) if on_cuda else (0, copy + VLLM_CACHE_GIB * 2**30)
    longest = max(shape.prompt + shape.width for shape in shapes)
    wanted = plan.rollout_batch * longest * passes.cache_token
    cache = GROWTH * min(wanted, half if on_cuda else CPU_CACHE_GIB * 2**30)
    if engine == "openvino":
        return weights + cache, weights
    return passes.prefill + cache, 0


def check_memory(plan: Scale, algorithm: Algorithm, outline: Outline, prompt: int = 0) -> str:
    """The forecast for one rank as words, such as "about 5.2 GB of the 12.1 GB that are free".

    Raises ConfigError if it is more, with the setting that helps. A model whose passes need values (experts
    that are chosen by them) is not forecast, and the words say so.
    """
    free = _free(outline.device)
    try:
        need = forecast_memory(plan, algorithm, outline, free, prompt).peak
    except RuntimeError as error:
        return f"memory that cannot be forecast ({str(error).splitlines()[0]})"
    if need <= free:
        return f"about {_gb(need)} of the {_gb(free)} that are free"
    each = f" on each of {ranks.count()} ranks" if ranks.count() > 1 else ""
    has = f"training needs about {_gb(need)}{each}, and {outline.device.type} has {_gb(free)} free"
    found: dict[str, float] = {}
    for setting, other in _savings(plan, sampler_name(plan.engine, outline.device.type)):
        found[setting] = forecast_memory(other, algorithm, Outline(other), free, prompt).peak
        if found[setting] <= free:
            raise ConfigError(f"{has}: set {setting}, which needs {_gb(found[setting])}")
    best = min(found, key=found.__getitem__)
    raise ConfigError(f"{has}: even {best} needs {_gb(found[best])}, so take a smaller scale.model")


def _savings(plan: Scale, engine: str) -> Iterator[tuple[str, Scale]]:
    """Settings that save memory, those first that change least of what is learned."""
    changes: list[dict[str, Any]] = [{"shard": True}] if ranks.count() > 1 else []
    if engine in ("vllm", "openvino"):
        changes.append({"engine": "transformers"})
    changes += [{"micro_batch_tokens": plan.micro_batch_tokens // 4}, {"gradient_checkpointing": True}]
    changes.append({"lora_rank": LORA_RANK})
    for change in changes:
        ((name, value),) = change.items()
        if getattr(plan, name) != value and not (name == "lora_rank" and plan.lora_rank):
            text = str(value).lower() if isinstance(value, bool) else value
            yield f"scale.{name}={text}", replace(plan, **change)


def _free(device: torch.device) -> float:
    """Free bytes for this rank: of its own GPU, or its part of the main memory."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    return free_ram() / ranks.count()


def _gb(size: float) -> str:
    return f"{size / 1e9:.1f} GB"
