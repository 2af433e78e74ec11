"""llama.cpp as an engine for measurements: greedy turns, one place per turn, weights written as GGUF after an update.

A place keeps the keys and values of its last turn. A new turn takes the place, or a copy of it, that shares most of
its beginning. Models of the Llama architecture with tied embeddings only. Needs llama-cpp-python and gguf.
"""

import ctypes
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gguf
import llama_cpp
import numpy as np

from sleuth.engines.decoding.lanes import Ticket
from sleuth.engines.decoding.stepped import SteppedDecoder, SteppedEngine, Written
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.models import load_model

BATCH = 512
"""Most tokens of a step."""
LAYER = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
WHOLE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}


class LlamaCppEngine(SteppedEngine):
    """Continues token contexts with llama.cpp, greedily."""

    def __init__(self, name: str, *, dtype: str, places: int = 32, context: int = 1024) -> None:
        """`places`: most turns at a time, of `context` tokens each; `dtype`: of weights, keys and values."""
        self.name, self._dtype, self.context_length = name, dtype, context
        model, tokenizer = load_model(name, "float32", "cpu")
        self._config: Any = model.config
        self.tokenizer = HFTokenizer(tokenizer)
        self._folder = TemporaryDirectory()
        self._save(model.named_parameters())
        self._decoder = _Decoder(self._path, dtype, places, context)
        self._start(self._decoder, self._config.vocab_size, [tokenizer.eos_token_id])

    @property
    def _path(self) -> Path:
        return Path(self._folder.name) / "model.gguf"

    def sync(self, policy: Any) -> None:
        """Write the policy's weights; the next sample loads them."""
        self._lanes.clear()
        self._save(policy.merged())

    def release(self) -> None:
        """Free weights, keys and values until the next sample."""
        self._lanes.clear()

    def fingerprint(self) -> str:
        """Nothing: measurements do not store episodes."""
        return ""

    def describe(self) -> dict[str, str]:
        """Also the binding's version."""
        return {"llama.cpp": llama_cpp.__version__}

    def _save(self, weights: Any) -> None:
        config = self._config
        writer = gguf.GGUFWriter(self._path, "llama")
        writer.add_context_length(config.max_position_embeddings)
        writer.add_embedding_length(config.hidden_size)
        writer.add_block_count(config.num_hidden_layers)
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count(config.num_attention_heads)
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
        writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
        writer.add_vocab_size(config.vocab_size)
        writer.add_tokenizer_model("no_vocab")
        heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
        for name, weight in weights:
            values = weight.detach().float().numpy()
            target = _target(name.removesuffix(".weight"))
            if count := heads.get(target.rpartition(".")[2]):
                # llama.cpp rotates neighbouring dimensions, transformers the two halves of a head.
                values = values.reshape(count, 2, -1, values.shape[1]).swapaxes(1, 2).reshape(values.shape)
            if self._dtype == "bfloat16" and values.ndim == 2:
                kind = gguf.GGMLQuantizationType.BF16
                writer.add_tensor(f"{target}.weight", gguf.quants.quantize(values, kind), raw_dtype=kind)
            else:
                writer.add_tensor(f"{target}.weight", np.ascontiguousarray(values))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()


def _target(name: str) -> str:
    if name in WHOLE:
        return WHOLE[name]
    layer, _, part = name.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{LAYER[part]}"


class _Decoder(SteppedDecoder):
    """llama.cpp's batches; weights are loaded when they are needed."""

    def __init__(self, path: Path, dtype: str, places: int, context: int) -> None:
        super().__init__()
        self._file, self._dtype, self._sizes = path, dtype, (places, context)
        self._model: Any = None
        self._cached: list[list[int]] = [[] for _ in range(places)]
        """Tokens whose keys and values each place holds."""
        self._place: dict[str, int] = {}
        self._waiting: dict[str, Ticket] = {}

    def wake(self) -> None:
        """See SteppedDecoder."""
        if self._model is not None:
            return
        places, context = self._sizes
        threads = int(os.environ["OMP_NUM_THREADS"])
        kind = llama_cpp.GGML_TYPE_BF16 if self._dtype == "bfloat16" else llama_cpp.GGML_TYPE_F32
        quiet = llama_cpp.llama_log_callback(lambda *_: None)
        llama_cpp.llama_log_set(quiet, ctypes.c_void_p(0))
        self._keep = quiet
        self._model = llama_cpp.llama_model_load_from_file(
            str(self._file).encode(), llama_cpp.llama_model_default_params()
        )
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx, settings.n_seq_max = places * context, places
        settings.n_batch = settings.n_ubatch = BATCH
        settings.n_threads = settings.n_threads_batch = threads
        settings.type_k = settings.type_v = kind
        settings.kv_unified = False
        self._context = llama_cpp.llama_init_from_model(self._model, settings)
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(BATCH, 0, 1)

    def begin(self, name: str, turn: Ticket) -> None:
        """See SteppedDecoder."""
        self._waiting[name] = turn

    def step(self) -> Iterator[Written]:
        """See SteppedDecoder."""
        for name, turn in list(self._waiting.items()):
            if self._takes_place(name, turn):
                del self._waiting[name]
        rows: list[tuple[int, int, int, bool]] = []
        ends: dict[str, int] = {}
        for name, place in sorted(self._place.items(), key=lambda item: -len(self._cached[item[1]])):
            tokens, start = self._open[name].tokens, len(self._cached[place])
            taken = tokens[start : start + BATCH - len(rows)]
            is_last = start + len(taken) == len(tokens)
            rows += [
                (token, start + i, place, is_last and i == len(taken) - 1) for i, token in enumerate(taken)
            ]
            self._cached[place] += taken
            if taken and is_last:
                ends[name] = len(rows) - 1
        self._decode(rows)
        for name, row in ends.items():
            logits = llama_cpp.llama_get_logits_ith(self._context, row)
            values = np.ctypeslib.as_array(logits, shape=(llama_cpp.llama_vocab_n_tokens(self._vocabulary),))
            yield name, [(int(values.argmax()), 0.0)]

    @property
    def _vocabulary(self) -> Any:
        return llama_cpp.llama_model_get_vocab(self._model)

    def _takes_place(self, name: str, turn: Ticket) -> bool:
        """Give a turn the place that holds most of its beginning, or a copy of it; False if all are taken."""
        free = [place for place in range(len(self._cached)) if place not in self._place.values()]
        if not free:
            return False
        most = len(turn.context) - 1
        shared = [min(most, _shared(turn.context, cached)) for cached in self._cached]
        place = max(free, key=lambda p: (shared[p], -len(self._cached[p])))
        best = max(range(len(shared)), key=shared.__getitem__)
        if any(_shared(turn.context, other) > shared[best] + BATCH // 16 for other in self._unread()):
            return False  # soon there is more to copy
        if shared[best] > shared[place]:
            llama_cpp.llama_memory_seq_rm(self._memory, place, -1, -1)
            llama_cpp.llama_memory_seq_cp(self._memory, best, place, -1, -1)
            shared[place] = shared[best]
        llama_cpp.llama_memory_seq_rm(self._memory, place, shared[place], -1)
        self._cached[place] = list(turn.context[: shared[place]])
        self._place[name] = place
        return True

    def _unread(self) -> Iterator[Sequence[int]]:
        """Contexts that are not computed yet."""
        for name, place in self._place.items():
            if len(self._cached[place]) < len(self._open[name].context):
                yield self._open[name].context

    def _decode(self, rows: Sequence[tuple[int, int, int, bool]]) -> None:
        batch = self._batch
        batch.n_tokens = len(rows)
        for i, (token, position, place, wants_logits) in enumerate(rows):
            batch.token[i], batch.pos[i], batch.logits[i] = token, position, wants_logits
            batch.n_seq_id[i], batch.seq_id[i][0] = 1, place
        if code := llama_cpp.llama_decode(self._context, batch):
            raise RuntimeError(f"llama_decode returned {code}")

    def end(self, names: Sequence[str]) -> None:
        """See SteppedDecoder."""
        for name in names:
            self._waiting.pop(name, None)
            self._place.pop(name, None)

    def forget(self) -> None:
        """See SteppedDecoder."""
        if self._model is not None:
            llama_cpp.llama_batch_free(self._batch)
            llama_cpp.llama_free(self._context)
            llama_cpp.llama_model_free(self._model)
        self._model = None
        self._cached = [[] for _ in self._cached]


def _shared(a: Sequence[int], b: Sequence[int]) -> int:
    """Length of the common beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
