"""Loss and gradient of an update compared with TRL's GRPOTrainer, on the same model and tokens, in float32.

TRL computes padded rows under a tool mask; we compute trajectories that share a prompt.
"""

from collections import defaultdict
from typing import Any

import pytest
import torch
from torch import Tensor

from sleuth.algorithms.grpo import GRPO
from sleuth.training.policy import Policy
from sleuth.training.update import forward
from sleuth.training.update.gradients import UpdateFigures, accumulate_gradients, compute_logprobs
from sleuth.types import Question, Segment, Signal, Trajectory
from support.trl import SETTINGS, tiny_llama, word_tokenizer

pytestmark = pytest.mark.slow  # importing TRL takes longer than all other tests of this room

LOSS_TYPES = {"grpo": "sequence", "bnpo": "token", "dapo": "token"}
VOCABULARY = 61
ADVANTAGES = [1.3, -0.4, 0.0, -0.9, 0.7]


def draw(count: int, seed: int) -> tuple[int, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randint(4, VOCABULARY, (count,), generator=generator).tolist())


def rollout(prompt: int, turns: list[int], seed: int) -> Trajectory:
    """Policy and world segments of these lengths in turn, after a prompt fixed by its length."""
    segments = [Segment("prompt", "", draw(prompt, prompt))]
    for i, length in enumerate(turns):
        segments.append(Segment("world" if i % 2 else "policy", "", draw(length, 100 * seed + i)))
    return Trajectory(Question(f"q{prompt}", "?", ()), tuple(segments))


ROLLOUTS = [
    rollout(12, [5, 4, 3], 1),
    rollout(12, [7], 2),
    rollout(12, [1, 9, 2, 3, 4], 3),
    rollout(9, [6, 2, 1], 4),  # TRL pads its prompt on the left
    rollout(9, [2, 5], 5),
]
SIGNALS = [Signal(t, (a,) * t.response_length) for t, a in zip(ROLLOUTS, ADVANTAGES, strict=True)]


@pytest.fixture(autouse=True)
def passes_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let short prompts be shared."""
    monkeypatch.setattr(forward, "PASS", defaultdict(int))


@pytest.fixture(scope="module")
def trainer(trl: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A GRPOTrainer around a tiny Llama; only its loss is used, so its settings are changed in place."""
    datasets = pytest.importorskip("datasets")
    folder, sizes = tmp_path_factory.mktemp("trl"), {"per_device_train_batch_size": 5, "num_generations": 5}
    trainer = trl.GRPOTrainer(
        model=tiny_llama(VOCABULARY, 0),
        reward_funcs=lambda completions, **_: [0.0] * len(completions),
        args=trl.GRPOConfig(output_dir=str(folder), beta=0.0, **sizes, **SETTINGS),
        train_dataset=datasets.Dataset.from_dict({"prompt": ["w5"]}),
        processing_class=word_tokenizer(VOCABULARY),
    )
    trainer.model.eval()  # no accumulation over steps
    return trainer


def padded(rows: list[tuple[int, ...]], side: str) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor(
        [[0] * (width - len(r)) + [*r] if side == "left" else [*r] + [0] * (width - len(r)) for r in rows]
    )


def trl_inputs(old: list[Tensor] | None, reference: list[Tensor] | None) -> dict[str, Tensor]:
    prompts = [t.segments[0].tokens for t in ROLLOUTS]
    completions = [tuple(t.tokens[len(p) :]) for t, p in zip(ROLLOUTS, prompts, strict=True)]
    own = [tuple(map(int, t.loss_mask[len(p) :])) for t, p in zip(ROLLOUTS, prompts, strict=True)]
    inputs = {
        "prompt_ids": padded(prompts, "left"),
        "prompt_mask": padded([(1,) * len(p) for p in prompts], "left"),
        "completion_ids": padded(completions, "right"),
        "completion_mask": padded([(1,) * len(c) for c in completions], "right"),
        "tool_mask": padded(own, "right"),
        "advantages": torch.tensor(ADVANTAGES),
        "num_items_in_batch": torch.tensor(float(sum(map(sum, own)))),
    }
    for name, values in (("old_per_token_logps", old), ("ref_per_token_logps", reference)):
        if values is not None:
            inputs[name] = laid_out(values, inputs["tool_mask"])
    return inputs


def laid_out(values: list[Tensor], mask: Tensor) -> Tensor:
    found = torch.zeros(mask.shape)
    found[mask.bool()] = torch.cat(values)
    return found


def gradients(model: Any) -> list[Tensor]:
    found = [parameter.grad.clone() for parameter in model.parameters()]
    model.zero_grad(set_to_none=True)
    return found


def both(
    trainer: Any, algorithm: GRPO, loss_type: str, *, corrected: bool = False, **logprobs: list[Tensor] | None
) -> tuple[float, list[Tensor], UpdateFigures, list[Tensor]]:
    trainer.loss_type, trainer.beta = loss_type, algorithm.beta
    trainer.epsilon_low = trainer.epsilon_high = algorithm.epsilon
    trainer.args.use_bias_correction_kl = corrected
    old, reference = logprobs.get("old"), logprobs.get("reference")
    loss = trainer._compute_loss(trainer.model, trl_inputs(old, reference))
    loss.backward()
    theirs = gradients(trainer.model)
    policy = Policy(trainer.model, precision="float32")
    figures = accumulate_gradients(
        policy, algorithm, SIGNALS, micro_batch_tokens=60, old_logprobs=old, ref_logprobs=reference
    )
    assert figures.shared == 1.0
    return float(loss.detach()), theirs, figures, gradients(trainer.model)


def largest_difference(one: list[Tensor], other: list[Tensor]) -> float:
    return max(float((a - b).abs().max()) for a, b in zip(one, other, strict=True))


def other_policies(trainer: Any) -> tuple[list[Tensor], list[Tensor]]:
    """Log-probabilities of an old policy that clips some tokens, and of a reference farther off."""
    logprobs = compute_logprobs(Policy(trainer.model, precision="float32"), ROLLOUTS)
    noise = torch.Generator().manual_seed(7)

    def shifted(size: float) -> list[Tensor]:
        return [values + size * torch.randn(values.shape, generator=noise) for values in logprobs]

    return shifted(0.3), shifted(0.7)


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("num_updates", [1, 2])
def test_loss_and_gradient_are_trls(trainer: Any, loss_type: str, beta: float, num_updates: int):
    old, reference = other_policies(trainer)
    algorithm = GRPO(beta=beta, kl="k3", aggregation=LOSS_TYPES[loss_type], num_updates=num_updates)  # type: ignore[arg-type]
    logprobs = {"old": old if num_updates > 1 else None, "reference": reference if beta else None}
    loss, theirs, figures, ours = both(trainer, algorithm, loss_type, **logprobs)
    assert max(float(g.abs().max()) for g in theirs) > 1e-2, "nothing to compare"
    assert abs(figures.loss - loss) <= 1e-6
    assert largest_difference(ours, theirs) <= 1e-6
    assert (figures.clip_fraction > 0) == (num_updates > 1)


def test_truncated_importance_sampling_is_trls(trainer: Any):
    """TRL's ratio of vLLM's samples ("token_truncate"), made as in its _generate_and_score_completions."""
    old, reference = other_policies(trainer)
    noise = torch.Generator().manual_seed(9)
    sampled = [values + torch.randn(values.shape, generator=noise) for values in old]
    inputs = trl_inputs(old, reference)
    difference = laid_out(old, inputs["tool_mask"]) - laid_out(sampled, inputs["tool_mask"])
    inputs["importance_sampling_ratio"] = torch.clamp(torch.exp(difference), max=1.2)
    trainer.loss_type, trainer.beta, trainer.use_vllm = "dapo", 0.04, True
    trainer.epsilon_low = trainer.epsilon_high = 0.2
    trainer.vllm_importance_sampling_correction = True
    try:
        loss = trainer._compute_loss(trainer.model, inputs)
    finally:
        trainer.use_vllm = False
    loss.backward()
    theirs = gradients(trainer.model)
    figures = accumulate_gradients(
        Policy(trainer.model, precision="float32"),
        GRPO(beta=0.04, aggregation="token", engine_ratio_max=1.2),
        SIGNALS,
        old_logprobs=old,
        ref_logprobs=reference,
        engine_logprobs=sampled,
    )
    assert abs(figures.loss - float(loss.detach())) <= 1e-6
    assert largest_difference(gradients(trainer.model), theirs) <= 1e-6
    assert bool((torch.exp(torch.cat(old) - torch.cat(sampled)) > 1.2).any()), "nothing was cut"


@pytest.mark.parametrize("loss_type", LOSS_TYPES)
def test_k2_on_policy_has_the_gradient_of_trls_corrected_penalty(trainer: Any, loss_type: str):
    _, reference = other_policies(trainer)
    algorithm = GRPO(beta=0.04, kl="k2", aggregation=LOSS_TYPES[loss_type])  # type: ignore[arg-type]
    _, theirs, _, ours = both(trainer, algorithm, loss_type, corrected=True, reference=reference)
    assert largest_difference(ours, theirs) <= 1e-6


def test_figures_are_trls(trainer: Any):
    old, reference = other_policies(trainer)
    trainer._metrics["eval"].clear()
    _, _, figures, _ = both(trainer, GRPO(beta=0.04), "dapo", old=old, reference=reference)
    metrics = {name: values[-1] for name, values in trainer._metrics["eval"].items()}
    assert figures.entropy == pytest.approx(metrics["entropy"], rel=1e-5)
    assert figures.clip_fraction == pytest.approx(metrics["clip_ratio/region_mean"], rel=1e-5)
