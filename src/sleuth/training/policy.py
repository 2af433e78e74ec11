"""Policy: the model in training, the reference it must stay near, and how it computes and is saved.

Invariant: the engine samples from `model`, and the optimiser changes `trained`. Both are one module,
except where ranks divide the parameters: then `model` is a whole copy, which is filled after every update.
The reference policy is a copy of the trainable weights only. It is exchanged with the live ones during
a forward pass, so that full fine-tuning and LoRA need one mechanism and not a second model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from sleuth.cpu import has_any
from sleuth.encoders.loading import quiet
from sleuth.engines.models import load_model
from sleuth.errors import ConfigError, OtherRunError, TrainingError
from sleuth.storage import whole_folder
from sleuth.training.parallel import ranks
from sleuth.training.parallel.sharding import Sharded, divided_like, empty, exchange, fill, whole
from sleuth.training.update.forward import Forward

Precision = Literal["auto", "float32", "bfloat16"]


class Policy:
    """A causal language model with trainable weights and, once frozen, a reference."""

    def __init__(
        self,
        model: nn.Module,
        tokenizer: Any = None,
        *,
        lora_rank: int = 0,
        precision: Precision = "auto",
        gradient_checkpointing: bool = False,
        shard: bool = False,
        seed: int = 0,
    ) -> None:
        """Wrap a loaded model. `lora_rank` > 0 adds adapters to all linear layers and trains only them.

        Weights become float32. The model stays in eval mode: dropout would make the ratio of the
        first update differ from 1. `seed` fixes the initial weights of the adapters.
        `tokenizer` is the Hugging Face tokenizer that is saved with the model.
        `gradient_checkpointing` computes activations twice in order to hold fewer of them.
        `shard` divides parameters, gradients and moments among the ranks, if there are several.
        Raises ConfigError for a model with adapters.
        """
        if getattr(model, "peft_config", None):
            raise ConfigError("the model holds an adapter already: merge it and give the plain model")
        # bfloat16 weights would lose most small updates to rounding.
        self.model = _with_adapters(model.float(), lora_rank, seed) if lora_rank else model.float()
        self.tokenizer = tokenizer
        self.lora_rank = lora_rank
        self.model.eval()
        if gradient_checkpointing:
            _remove_dropout(self.model)
            self.model.gradient_checkpointing_enable({"use_reentrant": False})  # type: ignore[operator]
        self.device = next(self.model.parameters()).device
        self.autocast_dtype = arithmetic_dtype(precision, self.device)
        self.trained = self.model
        """The module that the optimiser changes."""
        self.forward = Forward(self.causal_lm, self.autocast_dtype, gradient_checkpointing)
        """How the model is run, with and without gradients."""
        if shard and ranks.count() > 1:
            self.forward.make_trials()  # on the plain model, whose passes involve no other rank
            sharded = Sharded(self.model, lambda model: _base(model, lora_rank).get_decoder())
            self.trained = sharded.model
            self.forward.use(self.causal_lm, sharded)
        self.reference: dict[str, Tensor] | None = None
        """Trainable weights of the reference policy by name; None until it is frozen."""

    @classmethod
    def load(cls, name: str, *, device: str = "auto", **options: Any) -> Policy:
        """A policy by model name, with float32 weights: bfloat16 ones would lose small updates."""
        model, tokenizer = load_model(name, "float32", device)
        return cls(model, tokenizer, **options)

    @property
    def causal_lm(self) -> nn.Module:
        """The Hugging Face model itself, without the adapter wrapper (its adapters stay in place)."""
        base: nn.Module = _base(self.trained, self.lora_rank)
        return base

    @property
    def is_sharded(self) -> bool:
        """Whether the parameters are divided among ranks."""
        return self.trained is not self.model

    def trainable(self) -> dict[str, nn.Parameter]:
        """Trainable parameters by name; tied ones once."""
        return {name: p for name, p in self.trained.named_parameters() if p.requires_grad}

    def trainable_parameters(self) -> list[nn.Parameter]:
        """Parameters that the optimiser changes."""
        return list(self.trainable().values())

    def freeze_layers(self, share: float) -> None:
        """Train neither the embeddings nor this share of the layers, from the lowest up, from now on.

        The backward pass ends above them. An output layer that is tied to the embeddings is frozen too.
        """
        model: Any = self.causal_lm
        layers = model.get_decoder().layers
        for module in (model.get_input_embeddings(), *layers[: int(share * len(layers))]):
            module.requires_grad_(False)

    @property
    def version(self) -> int:
        """A number that every change of a weight of `model` increases.

        Frozen weights count too: without them, freezing half of the layers and loading a checkpoint cancel out.
        """
        return sum(parameter._version for parameter in self.model.parameters())

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Around an update: if sharded, free the whole copy that the engine samples from, and fill it at the end."""
        if not self.is_sharded:
            yield
            return
        empty(self.model)
        try:
            yield
        except (RuntimeError, ranks.RankLostError):
            raise  # other ranks are in the middle of a pass and would not fill theirs
        except Exception:
            fill(self.model, self.trained)
            raise
        fill(self.model, self.trained)

    def merged(self) -> Iterator[tuple[str, Tensor]]:
        """Weights by their names in the plain model, one at a time; adapters are added in."""
        plain = _base(self.model, self.lora_rank)
        modules = dict(plain.named_modules())
        for name, parameter in plain.named_parameters():
            owner, _, leaf = name.rpartition(".base_layer.")
            if ".lora_" in name:
                continue
            weight = parameter.detach()
            if leaf == "weight" and owner:
                weight = weight + modules[owner].get_delta_weight("default").detach()
            yield name.replace(".base_layer.", "."), weight

    def freeze_reference(self) -> None:
        """Make the policy as it is now the reference policy."""
        self.reference = {name: p.detach().clone() for name, p in self.trainable().items()}

    @contextmanager
    def as_reference(self) -> Iterator[None]:
        """The model with the reference weights, for a forward pass without gradients."""
        if self.reference is None:
            raise TrainingError("the loss needs a reference policy, but none was frozen")
        self._exchange(self.reference)
        try:
            yield
        finally:
            self._exchange(self.reference)

    def _exchange(self, other: dict[str, Tensor]) -> None:
        for name, parameter in self.trainable().items():
            if self.is_sharded:
                exchange(parameter, other[name])
            else:  # pointers only: nothing is copied
                parameter.data, other[name] = other[name], parameter.data

    def state(self) -> dict[str, Tensor]:
        """Trainable weights by name, for a checkpoint."""
        return {name: whole(p) for name, p in self.trainable().items()}

    def reference_state(self) -> dict[str, Tensor]:
        """Reference weights by name, for a checkpoint; empty until they are frozen."""
        return {name: whole(weights) for name, weights in (self.reference or {}).items()}

    def load_state(
        self, weights: Mapping[str, Tensor], reference: Mapping[str, Tensor] | None = None
    ) -> None:
        """Load what `state` returned, and the reference weights if given.

        Raises OtherRunError if they belong to another model.
        """
        own = self.trainable()
        if weights.keys() != own.keys() or any(weights[name].shape != p.shape for name, p in own.items()):
            raise OtherRunError("the checkpoint holds the weights of another model or another LoRA rank")
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(divided_like(parameter, weights[name]))
            if self.is_sharded:
                fill(self.model, self.trained)
        if reference is not None:
            self.reference = {name: divided_like(own[name], t) for name, t in reference.items()}

    def save(self, path: Path) -> None:
        """Write a folder that transformers can load, complete or not at all; adapters are merged in.

        With LoRA the adapter alone is saved too, in `path`/adapter.
        """
        with whole_folder(path) as work, quiet():
            self._write(work)

    def _write(self, folder: Path) -> None:
        model: Any = self.model
        if self.lora_rank:
            model.save_pretrained(folder / "adapter")
            model = deepcopy(model).merge_and_unload()
        model.save_pretrained(folder)
        if self.tokenizer is not None:
            self.tokenizer.save_pretrained(folder)


def _base(model: Any, lora_rank: int) -> Any:
    """The Hugging Face model inside its adapter wrapper, if it has one."""
    return model.get_base_model() if lora_rank else model


def _with_adapters(model: nn.Module, rank: int, seed: int) -> nn.Module:
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise ConfigError("LoRA needs peft: pip install '.[train]' in the Sleuth checkout") from error

    settings = LoraConfig(
        r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM"
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        wrapped: nn.Module = get_peft_model(model, settings)
    return wrapped


def _remove_dropout(model: nn.Module) -> None:
    """Set every dropout to 0: checkpointing runs in training mode, where it would make the policy random."""
    for module in model.modules():
        name = "p" if isinstance(module, nn.Dropout) else "attention_dropout"
        if isinstance(getattr(module, name, None), float):
            setattr(module, name, 0.0)


def arithmetic_dtype(precision: Precision, device: torch.device) -> torch.dtype | None:
    """bfloat16 where it is fast, None for plain float32."""
    if precision == "bfloat16":
        return torch.bfloat16
    if precision == "float32":
        return None
    return torch.bfloat16 if device.type == "cuda" or _cpu_has_fast_bfloat16() else None


def _cpu_has_fast_bfloat16() -> bool:
    # Without these instructions bfloat16 is emulated and about five times slower than float32.
    return has_any("amx_bf16", "avx512_bf16")
