"""Loading a causal language model and its tokenizer by name; shared by engine, trainer and judges."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sleuth.encoders import loading as hub
from sleuth.encoders.loading import first_line, quiet
from sleuth.engines import smollm2
from sleuth.errors import ConfigError, EngineError

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SEEN_OF_EACH = 256
"""Approximate number of values of each weight that enter a hash."""


def load_model(name: str, dtype: str = "auto", device: str = "auto") -> tuple[nn.Module, Any]:
    """(model in eval mode, Hugging Face tokenizer) of a local folder, a hub name or "smollm2-135m-instruct".

    dtype "auto" is bfloat16 on CUDA and float32 elsewhere; device "auto" is CUDA if there is one.
    Code that a repository ships is never run. Raises EngineError in one line.
    """
    from transformers import AutoModelForCausalLM

    target = pick_device(device)
    kind = pick_dtype(dtype, target)
    tokenizer = load_tokenizer(name)
    with loading(name) as (source, options):
        model = AutoModelForCausalLM.from_pretrained(source, dtype=kind, **options)
        return model.to(target).eval(), tokenizer


def load_outline(name: str) -> tuple[nn.Module, Any]:
    """(model on the meta device, Hugging Face tokenizer) by the same names: float32 shapes without weights.

    Raises EngineError in one line.
    """
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = load_tokenizer(name)
    with loading(name) as (source, options), torch.device("meta"):
        config = AutoConfig.from_pretrained(source, **options)
        return AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval(), tokenizer


def load_tokenizer(name: str) -> Any:
    """The Hugging Face tokenizer of a model by the same names. Raises EngineError in one line."""
    from transformers import AutoTokenizer

    with loading(name) as (source, options):
        return AutoTokenizer.from_pretrained(source, **options)


def declared_length(name: str) -> int | None:
    """The context length in tokens that a model's config declares, if it does."""
    from transformers import AutoConfig

    with loading(name) as (source, options):
        config = AutoConfig.from_pretrained(source, **options).get_text_config(decoder=True)
    length = getattr(config, "max_position_embeddings", None)
    return None if length is None else int(length)


@contextmanager
def loading(name: str) -> Iterator[tuple[str, dict[str, bool]]]:
    """(path or hub name, options) to load from; every failure becomes a one-line EngineError."""
    source = _source(name)
    with hub.loading(source, f"model {name!r}") as options:
        yield source, options


def pick_device(device: str) -> torch.device:
    """The device a name means; "auto" is CUDA if there is one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except RuntimeError as error:
        raise ConfigError(f"unknown device {device!r}: {first_line(error)}") from error
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"device {device!r}: this machine or this torch has no CUDA")
    try:
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:  # torch raises either, by the kind of device
        raise ConfigError(f"device {device!r} cannot be used: {first_line(error)}") from error
    return found


def pick_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """The torch dtype of "auto", "float32", "bfloat16" or "float16"."""
    if dtype == "auto":
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if dtype not in _DTYPES:
        raise ConfigError(f"unknown dtype {dtype!r}; known: auto, {', '.join(_DTYPES)}")
    return _DTYPES[dtype]


def weights_hash(weights: Iterable[tuple[str, Tensor]]) -> str:
    """A hash over the names and a few hundred values of every weight, which any update of them changes."""
    digest = hashlib.blake2b(digest_size=8)
    for name, weight in weights:
        values = weight.detach().flatten()
        some = values[:: max(1, values.numel() // SEEN_OF_EACH)]
        digest.update(name.encode() + some.float().cpu().numpy().tobytes())
    return digest.hexdigest()


def _source(name: str) -> str:
    if name == smollm2.NAME:
        with quiet():
            return str(smollm2.find_or_convert())
    path = Path(name).expanduser()
    if path.is_dir():
        if not any((path / file).is_file() for file in ("config.json", "adapter_config.json")):
            raise EngineError(f"no config.json in model folder {name!r}")
        return str(path)
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1:
        raise EngineError(f"no model folder {name!r}")
    return name
