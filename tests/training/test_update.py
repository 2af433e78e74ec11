"""The shared prefix changes cost, never gradients."""

from dataclasses import replace

import pytest
import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from sleuth.algorithms.grpo import GRPO
from sleuth.algorithms.sft import SFT
from sleuth.errors import TrainingError
from sleuth.training.layout import common_prefix, micro_batches
from sleuth.training.policy import Policy
from sleuth.training.update import accumulate_gradients, can_share, compute_logprobs, output_logits
from sleuth.types import Question, Segment, Signal, Trajectory

TINY = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
}
FAMILIES = {
    "llama": (LlamaConfig, LlamaForCausalLM),
    "qwen2": (Qwen2Config, Qwen2ForCausalLM),
    "qwen3": (Qwen3Config, Qwen3ForCausalLM),
}


def tiny(family: str = "llama", lora_rank: int = 0) -> Policy:
    torch.manual_seed(0)
    config, model = FAMILIES[family]
    extra = {"head_dim": 8} if family == "qwen3" else {}
    return Policy(model(config(**TINY, **extra)), lora_rank=lora_rank, precision="float32")


def rollout(prompt: int, turns: list[tuple[int, int]], seed: int) -> Trajectory:
    """Random tokens: a prompt seeded by its length, then (policy, world) turns."""
    shared = torch.Generator().manual_seed(prompt)
    own = torch.Generator().manual_seed(seed)

    def draw(n: int, generator: torch.Generator) -> tuple[int, ...]:
        return tuple(torch.randint(0, 97, (n,), generator=generator).tolist())

    segments = [Segment("prompt", "", draw(prompt, shared))]
    for policy, world in turns:
        segments.append(Segment("policy", "", draw(policy, own)))
        segments.append(Segment("world", "", draw(world, own)))
    return Trajectory(Question(f"q{prompt}", "?", ()), tuple(segments))


GROUP = [
    rollout(20, [(5, 3), (4, 0)], 1),
    rollout(20, [(1, 0)], 2),
    rollout(20, [(7, 9), (2, 2), (3, 0)], 3),
    rollout(31, [(6, 0)], 4),
    rollout(31, [(2, 8), (5, 4)], 5),
]
SIGNALS = [Signal(t, (0.5 * i - 1.2,) * t.response_length) for i, t in enumerate(GROUP)]


def gradients(
    policy: Policy, algorithm: object = GRPO(beta=0.0), signals: list[Signal] = SIGNALS, **options: object
):  # type: ignore[no-untyped-def]
    for parameter in policy.trainable_parameters():
        parameter.grad = None
    figures = accumulate_gradients(policy, algorithm, signals, **options)  # type: ignore[arg-type]
    flat = torch.cat([p.grad.flatten() for p in policy.trainable_parameters() if p.grad is not None])
    return figures, flat


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / b.norm())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("algorithm", [GRPO(beta=0.0), GRPO(beta=0.0, aggregation="token"), SFT()])
def test_shared_prefix_has_the_gradients_of_plain_rows(family: str, algorithm: object):
    policy = tiny(family)
    shared, a = gradients(policy, algorithm)
    plain, b = gradients(policy, algorithm, share_prefix=False, micro_batch_tokens=1)
    assert shared.shared == 1.0
    assert plain.shared == 0.0
    assert shared.tokens < plain.tokens
    assert relative(a, b) < 1e-5
    assert shared.loss == pytest.approx(plain.loss, rel=1e-5, abs=1e-6)
    assert shared.entropy == pytest.approx(plain.entropy, rel=1e-5)


def test_shared_prefix_with_adapters_reference_and_old_policy():
    policy = tiny(lora_rank=4)
    for parameter in policy.trainable_parameters():
        torch.nn.init.normal_(parameter, std=0.05)
    policy.freeze_reference()
    for parameter in policy.trainable_parameters():
        parameter.data += 0.02 * torch.randn_like(parameter)
    algorithm = GRPO(beta=0.1, num_updates=2)
    old = [values + 0.1 for values in compute_logprobs(policy, GROUP)]
    ref = compute_logprobs(policy, GROUP, reference=True)
    options = {"old_logprobs": old, "ref_logprobs": ref}
    shared, a = gradients(policy, algorithm, **options)
    plain, b = gradients(policy, algorithm, share_prefix=False, **options)
    assert relative(a, b) < 1e-5
    assert shared.kl == pytest.approx(plain.kl, rel=1e-4)
    assert shared.ratio == pytest.approx(torch.exp(torch.tensor(-0.1)).item(), rel=1e-4)


@pytest.mark.parametrize("budget", [1, 30, 60, 100, 10_000])
def test_micro_batches_change_nothing(budget: int):
    policy = tiny()
    _, whole = gradients(policy)
    figures, split = gradients(policy, micro_batch_tokens=budget)
    assert relative(split, whole) < 1e-5
    assert figures.policy_tokens == sum(t.response_length for t in GROUP)


def test_logprobs_are_those_of_a_plain_forward_pass():
    policy = tiny()
    found = compute_logprobs(policy, GROUP, temperature=0.7)
    for trajectory, logprobs in zip(GROUP, found, strict=True):
        ids = torch.tensor([trajectory.tokens])
        logits = policy.model(ids).logits[0].float() / 0.7
        expected = torch.log_softmax(logits[:-1], -1).gather(1, ids[0, 1:, None])[:, 0]
        mask = torch.tensor(trajectory.loss_mask[1:])
        assert torch.allclose(logprobs, expected[mask], atol=1e-5)


def test_what_the_world_says_carries_no_loss():
    policy = tiny()
    base = rollout(20, [(5, 0)], 1)
    tail = replace(base, segments=(*base.segments, Segment("world", "", (1, 2, 3))))
    _, a = gradients(policy, SFT(), SFT().signals([[base]]))
    _, b = gradients(policy, SFT(), SFT().signals([[tail]]))
    assert torch.equal(a, b)


def test_a_weight_of_zero_has_no_gradient_but_counts():
    policy = tiny()
    silent = Signal(GROUP[0], (0.0,) * GROUP[0].response_length)
    loud = Signal(GROUP[1], (1.0,) * GROUP[1].response_length)
    _, both = gradients(policy, signals=[silent, loud])
    _, alone = gradients(policy, signals=[loud])
    assert relative(both, alone / 2) < 1e-5


def test_no_signals_no_gradient():
    policy = tiny()
    figures = accumulate_gradients(
        policy, GRPO(beta=0.0), [Signal(GROUP[0], (0.0,) * GROUP[0].response_length)]
    )
    assert (figures.loss, figures.policy_tokens) == (0.0, 0)
    assert all(p.grad is None for p in policy.trainable_parameters())


def test_empty_response_has_no_logprobs():
    silent = Trajectory(Question("q", "?", ()), (Segment("prompt", "", (1, 2, 3)),))
    assert [len(v) for v in compute_logprobs(tiny(), [silent, GROUP[1]])] == [0, 1]


def test_a_response_without_prompt_is_refused():
    naked = Trajectory(Question("q", "?", ()), (Segment("policy", "", (1, 2, 3)),))
    with pytest.raises(TrainingError, match="without a prompt"):
        compute_logprobs(tiny(), [naked])


def test_sliding_windows_are_computed_as_plain_rows():
    torch.manual_seed(0)
    windowed = Policy(MistralForCausalLM(MistralConfig(**TINY, sliding_window=8)), precision="float32")
    assert not can_share(windowed)
    figures, _ = gradients(windowed)
    assert figures.shared == 0.0


def test_gradient_checkpointing_computes_plain_rows_with_the_same_gradients():
    _, expected = gradients(tiny())
    model = tiny().model
    policy = Policy(model, precision="float32", gradient_checkpointing=True)
    assert not can_share(policy)
    figures, found = gradients(policy)
    assert figures.shared == 0.0
    assert relative(found, expected) < 1e-5
    assert not policy.model.training


def test_output_scalings_of_other_families():
    policy = tiny()
    states = torch.randn(3, 32)
    plain = output_logits(policy.model, states)
    policy.model.config.final_logit_softcapping = 2.0  # type: ignore[union-attr]
    assert torch.allclose(output_logits(policy.model, states), torch.tanh(plain / 2) * 2)


def test_common_prefix():
    assert common_prefix([[1, 2, 3], [1, 2, 4, 5], [1, 2]]) == 2
    assert common_prefix([[1], [2]]) == 0
    assert common_prefix([[1, 2]]) == 2


def test_batches_keep_a_group_together_and_respect_the_budget():
    batches = micro_batches(GROUP, 10_000)
    assert [[s.index for s in b.sequences] for b in batches] == [[0, 1, 2], [3, 4]]
    assert [b.prefix for b in batches] == [20, 31]
    for budget in (1, 40, 55):
        parts = micro_batches(GROUP, budget)
        assert sorted(s.index for b in parts for s in b.sequences) == [0, 1, 2, 3, 4]
        assert all(b.num_tokens <= budget or len(b.sequences) == 1 for b in parts)
