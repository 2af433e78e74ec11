"""OpenVINOEngine: rollouts by OpenVINO GenAI on the CPU, in the process of the trainer.

The model's graph is exported once. Each `sync` writes the policy's weights into a file of that graph, from which
the next sample loads them.
"""

from __future__ import annotations

import gc
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sleuth.cpu import has_any
from sleuth.encoders.loading import first_line, quiet
from sleuth.engines.base import Sampling
from sleuth.engines.decoding.lanes import Ticket
from sleuth.engines.decoding.stepped import SteppedDecoder, SteppedEngine, Written
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.models import load_model, weights_hash
from sleuth.errors import EngineError
from sleuth.lock import FolderLock, remove_left
from sleuth.memory import free_ram, give_back

PREFIX = "sleuth-openvino-"
"""Beginning of the names of the folders with graphs, half a gigabyte each."""
GRAPH = "openvino_model.xml"
PROMPT_TOKENS = 4096
"""Most prompt tokens of one step."""
MOST_TURNS = 256
"""Most turns side by side."""
BLOCK = 32
"""Tokens in a block of OpenVINO's cache on the CPU."""


class OpenVINOEngine(SteppedEngine):
    """Continues token contexts with OpenVINO on the CPU.

    Log-probabilities are given at `temperature` and left out at any other and at top_p < 1, since OpenVINO returns
    only those of the uncut distribution at 1.0.
    """

    def __init__(
        self,
        name: str,
        *,
        dtype: str = "float32",
        temperature: float = 1.0,
        cache_gib: float | None = None,
    ) -> None:
        """Load a model by folder, hub name or "smollm2-135m-instruct".

        dtype: "float32" or "bfloat16", the arithmetic; weights stay in float32.
        temperature: that of the samples whose log-probabilities are wanted.
        cache_gib: most memory for keys and values; default a quarter of the machine's free memory.
        Raises EngineError if OpenVINO is missing, or cannot run the model with weights that can be replaced.
        """
        self.name = name
        self._dtype = dtype
        self._temperature = temperature
        _threads(dtype)  # before the model is loaded
        self._cache_gib = cache_gib or free_ram() / 4 / 2**30
        # A graph that was loaded maps its file, so the folder lives as long as the engine.
        remove_left(PREFIX)
        self._folder = TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
        self._lock = FolderLock(Path(self._folder.name))
        with _one_line(f"OpenVINO cannot run {name!r}"):
            model, tokenizer = load_model(name, "float32", "cpu")
            self._hash = weights_hash(model.named_parameters())
            vectors = _vectors_replaced(model)
            self._graph, self._weights = _replaceable(_exported(model, self._folder.name), model)
            for vector, values in vectors.items():
                self._weights[vector].reshape(-1)[...] = values
            _temper(self._graph, temperature)
            config: Any = model.config
            self.context_length = int(config.max_position_embeddings)
            self._block_bytes = BLOCK * _token_bytes(config, 2 if dtype == "bfloat16" else 4)
        self.tokenizer = HFTokenizer(tokenizer)
        self._synced: tuple[Any, int] | None = None
        self._save()
        found = model.generation_config.eos_token_id  # type: ignore[union-attr]
        ids = found if isinstance(found, list) else [found]
        eos = frozenset(int(i) for i in [*ids, tokenizer.eos_token_id] if i is not None)
        decoder = _Decoder(self._pipeline, config.vocab_size, temperature)
        self._start(decoder, config.vocab_size, eos)

    def sync(self, policy: Any) -> None:
        """Copy the policy's weights, adapters merged, once nothing is being decoded; see Engine."""
        present = (policy, policy.version)
        if self._synced is not None and self._synced[0] is policy and self._synced[1] == present[1]:
            return
        self._synced = None  # a copy that fails half-way must not count as one
        self.release()  # also what the update freed, which the C library keeps in blocks of other sizes
        for name, weight in policy.merged():
            self._weights[name][...] = weight.float().cpu().numpy().reshape(self._weights[name].shape)
        self._save()
        self._synced, self._hash = present, weights_hash(policy.merged())

    def release(self) -> None:
        """Free keys, values and OpenVINO's copy of the weights until the next sample."""
        self._lanes.clear()
        give_back()

    def fingerprint(self) -> str:
        """Hash of the weights handed over last, or of the model's files before any were."""
        return self._hash

    def describe(self) -> dict[str, str]:
        """Also arithmetic, device and OpenVINO's version."""
        import openvino_genai

        facts = {"arithmetic": self._dtype, "device": "cpu", "openvino": openvino_genai.__version__}
        return super().describe() | facts

    def _has_logprobs(self, sampling: Sampling) -> bool:
        at = sampling.temperature or 1.0
        return at == self._temperature and (not sampling.temperature or sampling.top_p == 1)

    def _save(self) -> None:
        import openvino

        with _one_line("OpenVINO did not take the weights"):
            openvino.save_model(self._graph, Path(self._folder.name) / GRAPH, compress_to_fp16=False)

    def _pipeline(self) -> tuple[Any, int]:
        """OpenVINO's scheduler over the weights that were saved last, and the number of its cache's blocks."""
        import openvino_genai

        precision = {"float32": "f32", "bfloat16": "bf16"}[self._dtype]
        settings: dict[str, object] = {
            "INFERENCE_NUM_THREADS": _threads(self._dtype),
            "INFERENCE_PRECISION_HINT": precision,
            # By default it keeps keys and values in 8 bits and quantises activations: other tokens.
            "KV_CACHE_PRECISION": precision,
            "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0,
            # Pinned threads of two runs would share one core and leave the other idle.
            "ENABLE_CPU_PINNING": False,
        }
        plan = self._plan()
        with _one_line(f"OpenVINO cannot run {self.name!r}"):
            pipeline = openvino_genai.ContinuousBatchingPipeline(
                self._folder.name, plan, "CPU", settings, {}, {}
            )
        return pipeline, plan.num_kv_blocks

    def _plan(self) -> Any:
        """Sizes of the cache and of a step."""
        import openvino_genai

        plan = openvino_genai.SchedulerConfig()
        plan.num_kv_blocks = max(1, int(self._cache_gib * 2**30) // self._block_bytes)
        plan.enable_prefix_caching = True
        plan.max_num_batched_tokens, plan.max_num_seqs = PROMPT_TOKENS, MOST_TURNS
        return plan


class _Decoder(SteppedDecoder):
    """OpenVINO's scheduler, loaded when it is needed.

    It gives a cached block that is only partly filled to every new request that begins with its tokens. Two that
    continue it differently would overwrite each other, so one of them waits until the other has begun.

    A full cache makes it preempt turns, which then get wrong tokens, so turns wait until there is room.
    """

    def __init__(self, load: Callable[[], tuple[Any, int]], vocabulary: int, temperature: float) -> None:
        super().__init__()
        self._load = load
        self._vocabulary = vocabulary
        self._temperature = temperature
        self._pipeline: Any = None
        self._blocks = 0
        """Blocks of the cache."""
        self._waiting: dict[str, Ticket] = {}
        self._new: dict[str, _Start] = {}
        self._handles: dict[str, Any] = {}
        self._partial: set[int] = set()
        """Heads of the cached blocks that may be partly filled."""

    def wake(self) -> None:
        """See SteppedDecoder."""
        if self._pipeline is None:
            self._pipeline, self._blocks = self._load()

    def begin(self, name: str, turn: Ticket) -> None:
        """See SteppedDecoder."""
        self._waiting[name] = turn

    def step(self) -> Iterator[Written]:
        """See SteppedDecoder."""
        left = self._blocks - sum(_most_blocks(self._open[name]) for name in self._handles)
        for name, turn in list(self._waiting.items()):
            if self._handles and _most_blocks(turn) > left:
                break  # one too large for the whole cache is refused below
            start = _Start(turn.context, {h: b for h, b in _blocks(turn.context) if h in self._partial})
            if not any(start.clashes(other) for other in self._new.values()):
                self._add(name, turn)
                left -= _most_blocks(turn)
                del self._waiting[name]
                self._new[name] = start
        with _one_line("OpenVINO failed"):
            self._pipeline.step()
        for name, handle in self._handles.items():
            if handle.get_status().name == "IGNORED":
                raise EngineError(
                    f"OpenVINO's cache has no room for {len(self._open[name].context)} tokens: give a larger cache_gib"
                )
            if handle.can_read():
                self._new.pop(name, None)
                (written,) = handle.read().values()
                yield name, zip(written.generated_ids, written.generated_log_probs, strict=True)

    def _add(self, name: str, turn: Ticket) -> None:
        import openvino
        import openvino_genai

        wanted, settings = turn.sampling, openvino_genai.GenerationConfig()
        settings.max_new_tokens, settings.ignore_eos, settings.logprobs = turn.limit, True, 1
        settings.set_eos_token_id(self._vocabulary)  # no token: Turn knows where a turn ends
        settings.do_sample = wanted.temperature > 0
        if settings.do_sample:
            settings.temperature = wanted.temperature / self._temperature
            settings.top_p, settings.rng_seed = wanted.top_p, turn.seed % 2**63
        tokens = openvino.Tensor(np.array([turn.context], dtype=np.int64))
        with _one_line("OpenVINO refused a context"):
            self._handles[name] = self._pipeline.add_request(int(name), tokens, settings)

    def end(self, names: Sequence[str]) -> None:
        """See SteppedDecoder."""
        for name in names:
            if self._waiting.pop(name, None) is None:
                self._handles.pop(name).stop()
                heads = [head for head, _ in _blocks(self._open[name].tokens)]
                # One that ends before its first token may end in any block of its context.
                self._partial.update(heads if self._new.pop(name, None) else heads[-1:])
        if not self._handles and self._pipeline.has_non_finished_requests():
            self._pipeline.step()  # places are freed by the next step

    def forget(self) -> None:
        """See SteppedDecoder."""
        self._pipeline = None
        self._partial.clear()
        gc.collect()


@dataclass(frozen=True)
class _Start:
    """A turn that was added and has no token yet."""

    context: Sequence[int]
    blocks: dict[int, tuple[int, ...]]
    """Its tokens of each block that may be restored to it partly filled, by the block's head."""

    def clashes(self, other: _Start) -> bool:
        """Whether it must wait: both would write one block, or it can soon use the other's keys and values."""
        differs = any(other.blocks.get(head, block) != block for head, block in self.blocks.items())
        return differs or self.context == other.context


def _most_blocks(turn: Ticket) -> int:
    """Blocks of a turn that reaches its limit of tokens, and one to spare."""
    return -(-(len(turn.context) + turn.limit) // BLOCK) + 1


def _threads(dtype: str) -> int:
    """Torch's threads; at least two in bfloat16 with AMX, where one ends the process in a division by zero (2026.4.1).

    Raises EngineError if the process has one core only.
    """
    least = 2 if dtype == "bfloat16" and has_any("amx_bf16") else 1
    if least > 1 and len(os.sched_getaffinity(0)) < least:
        raise EngineError("OpenVINO needs two cores for bfloat16 with AMX: set scale.precision=float32")
    return max(least, torch.get_num_threads())


def _token_bytes(config: Any, size: int) -> int:
    """Bytes of one token's keys and values, at `size` bytes a number."""
    heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return 2 * size * int(config.num_hidden_layers * heads * width)


def _blocks(tokens: Sequence[int]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(head: a hash of all tokens before it, tokens) of each block of the cache."""
    head = 0
    for start in range(0, len(tokens), BLOCK):
        block = tuple(tokens[start : start + BLOCK])
        yield head, block
        head = hash((head, block))


def is_installed() -> bool:
    """Whether the packages of the extra `openvino` are there."""
    return all(find_spec(name) is not None for name in ("openvino_genai", "optimum", "optimum.intel"))


def _vectors_replaced(model: Any) -> dict[str, NDArray[np.float32]]:
    """Scales and biases by name, after the model was given random ones.

    The export would remove a factor of one or a summand of zero from the graph.
    """
    own = {name: weight for name, weight in model.named_parameters() if weight.dim() == 1}
    values = {name: weight.detach().numpy().copy() for name, weight in own.items()}
    with torch.no_grad():
        for weight in own.values():
            weight.uniform_(0.5, 1.5)
    return values


def _exported(model: Any, folder: str) -> Any:
    """OpenVINO's graph of a model, with its config in the folder."""
    import openvino
    from optimum.exporters.openvino.convert import export_from_model
    from optimum.intel import OVConfig

    with quiet():
        export_from_model(model, folder, task="text-generation-with-past", ov_config=OVConfig(dtype="fp32"))
    core = openvino.Core()
    core.set_property({"ENABLE_MMAP": False})  # the file is written again
    return core.read_model(Path(folder) / GRAPH)


def _replaceable(graph: Any, model: Any) -> tuple[Any, dict[str, NDArray[np.float32]]]:
    """The graph and its weights by their names in the model, as arrays that it reads when it is saved.

    Raises EngineError unless every large constant is one weight and every weight is found, with its values.
    """
    import openvino

    known = dict(model.state_dict(keep_vars=True))
    names = {id(weight): name for name, weight in model.named_parameters()}
    found: dict[str, NDArray[np.float32]] = {}
    for constant in [node for node in graph.get_ordered_ops() if node.get_type_name() == "Constant"]:
        values, users = constant.data, list(constant.output(0).get_target_inputs())
        guesses = [known[guess] for guess in _guesses(constant, users) if guess in known]
        same = [w for w in guesses if np.array_equal(w.detach().numpy().ravel(), values.ravel())]
        if not same:
            if values.size >= model.config.hidden_size:
                raise EngineError(
                    f"its graph has a constant that is not a weight: {constant.get_friendly_name()}"
                )
            continue
        name = names[id(same[0])]
        found.setdefault(name, np.array(values, dtype=np.float32))
        own = openvino.op.Constant(found[name].reshape(values.shape), shared_memory=True)
        for user in users:
            user.replace_source_output(own.output(0))
    if missing := set(names.values()) - set(found):
        raise EngineError(f"its graph has no constant for the weight {min(missing)}")
    return graph, found


def _guesses(constant: Any, users: Sequence[Any]) -> Iterator[str]:
    """Names that a constant may have in the model: its own, or after the module that uses it."""
    yield constant.get_friendly_name().removeprefix("self.")
    for user in users:
        module = user.get_node().get_friendly_name().split("/")[0].removeprefix("__module.")
        yield f"{module}.weight"
        yield f"{module}.bias"


def _temper(graph: Any, temperature: float) -> None:
    """Divide the logits by a temperature, before the output layer: OpenVINO's log-probabilities are at 1.0."""
    from openvino import opset13 as ops

    (layer,) = (result.input_value(0).get_node() for result in graph.get_results())
    if layer.get_type_name() != "MatMul":
        raise EngineError(f"its logits come from {layer.get_type_name()}, not from a plain output layer")
    if temperature not in (0.0, 1.0):
        hidden = ops.multiply(layer.input_value(0), np.float32(1 / temperature))
        layer.input(0).replace_source_output(hidden.output(0))


@contextmanager
def _one_line(what: str) -> Iterator[None]:
    """Whatever OpenVINO raises as an EngineError of one line, and nothing else printed."""
    logging.getLogger("nncf").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ModuleNotFoundError as error:
        raise EngineError(
            f"{error.name} is not installed: pip install '.[openvino]' in the Sleuth checkout"
        ) from error
    except Exception as error:
        raise EngineError(f"{what}: {first_line(error)}") from error
