"""GRPO by Sleuth's training loop and by TRL's GRPOTrainer, with the settings that make their work equal."""

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from sleuth.algorithms.grpo import GRPO
from sleuth.scale import Scale
from sleuth.training.loop import Parts, train
from sleuth.training.policy import Policy
from sleuth.training.runs.log import RunLog
from sleuth.training.runs.phase import Evaluate
from sleuth.training.update.gradients import accumulate_gradients
from sleuth.types import Author, Question, Segment, Signal, Trajectory


def sleuth_steps(
    policy: Policy, parts: Parts, scale: Scale, evaluate: Evaluate | None = None
) -> list[dict[str, Any]]:
    """Rows of metrics.jsonl, one a step. `evaluate` is called as scale.eval_every says."""
    with TemporaryDirectory() as folder:
        with RunLog(Path(folder)) as log:
            train(policy, parts, scale, log, evaluate=evaluate)
        return list(
            map(json.loads, (Path(folder) / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
        )


def trl_trainer(model: Any, tokenizer: Any, prompts: Sequence[Any], folder: str, **settings: Any) -> Any:
    """TRL's trainer on these prompts in order, without a KL term or checkpoints.

    `settings` are those of GRPOConfig, and reward_funcs, callbacks and rollout_func of GRPOTrainer.
    """
    from trl import GRPOConfig, GRPOTrainer

    import datasets

    names = ("reward_funcs", "callbacks", "rollout_func")
    parts = {name: settings.pop(name) for name in names if name in settings}
    arguments = GRPOConfig(
        output_dir=folder,
        beta=0.0,
        gradient_checkpointing=False,
        shuffle_dataset=False,
        report_to="none",
        save_strategy="no",
        **settings,
    )
    rows = datasets.Dataset.from_dict({"prompt": list(prompts)})
    return GRPOTrainer(model=model, args=arguments, train_dataset=rows, processing_class=tokenizer, **parts)


def trl_copy(
    policy: Policy, folder: str, prompts: Sequence[str] = ("a",), group: int = 2, **parts: Any
) -> Any:
    """TRL's trainer of a copy of the policy on CPU: one step, one row in a backward pass, the loss of our GRPO."""
    return trl_trainer(
        copy.deepcopy(policy.model),
        policy.tokenizer,
        prompts,
        folder,
        reward_funcs=lambda completion_ids, **_: list(map(distinct, completion_ids)),
        per_device_train_batch_size=1,
        gradient_accumulation_steps=len(prompts) * group,
        num_generations=group,
        max_completion_length=4096,
        max_steps=1,
        learning_rate=0.0,
        loss_type="grpo",
        bf16=policy.autocast_dtype is torch.bfloat16,
        use_cpu=True,
        disable_tqdm=True,
        **parts,
    )


def distinct(tokens: Sequence[int]) -> float:
    """A reward that differs between samples: distinct tokens, in hundreds."""
    return len(set(tokens)) / 100


def random_group(policy: Policy, prompt: int, response: int, group: int) -> list[Signal]:
    """Signals of random rollouts of one question with so many tokens."""
    draw = torch.Generator().manual_seed(0)
    words = policy.model.get_input_embeddings().num_embeddings  # type: ignore[operator]

    def segment(author: Author, length: int) -> Segment:
        return Segment(author, "", tuple(torch.randint(0, words, (length,), generator=draw).tolist()))

    first = segment("prompt", prompt)
    rows = [Trajectory(Question("q", "", ()), (first, segment("policy", response))) for _ in range(group)]
    return [Signal(row, (2 * i / max(1, group - 1) - 0.9,) * response) for i, row in enumerate(rows)]


def our_update(policy: Policy, signals: Sequence[Signal], micro_batch_tokens: int = 16384) -> None:
    """Sleuth's loss and backward pass."""
    accumulate_gradients(policy, GRPO(beta=0.0), signals, micro_batch_tokens=micro_batch_tokens)


def their_update(trainer: Any, signals: Sequence[Signal]) -> None:
    """TRL's loss and backward pass, row by row; the trainer's model must be in eval mode."""
    for signal in signals:
        prompt, response = (torch.tensor([s.tokens]) for s in signal.trajectory.segments)
        inputs = {
            "prompt_ids": prompt,
            "prompt_mask": torch.ones_like(prompt),
            "completion_ids": response,
            "completion_mask": torch.ones_like(response),
            "advantages": torch.tensor(signal.weights[:1]),
        }
        (trainer._compute_loss(trainer.model, inputs) / len(signals)).backward()
