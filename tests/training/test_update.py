"""The shared prefix changes cost, never gradients."""

import math
from collections import UserList, defaultdict
from dataclasses import replace
from typing import Any

import pytest
import torch
import transformers

from sleuth.algorithms.grpo import GRPO
from sleuth.algorithms.sft import SFT
from sleuth.errors import ConfigError, TrainingError
from sleuth.training.policy import Policy
from sleuth.training.update import forward
from sleuth.training.update.gradients import accumulate_gradients, compute_logprobs
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
FAMILIES: dict[str, dict[str, Any]] = {"Llama": {}, "Qwen2": {}, "Qwen3": {"head_dim": 8}}


@pytest.fixture(autouse=True)
def passes_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let short prompts be shared."""
    monkeypatch.setattr(forward, "PASS", defaultdict(int))


def tiny(
    family: str = "Llama",
    lora_rank: int = 0,
    precision: str = "float32",
    **changes: Any,
) -> Policy:
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**TINY | FAMILIES.get(family, {}) | changes)
    model = getattr(transformers, f"{family}ForCausalLM")(config)
    return Policy(model, lora_rank=lora_rank, precision=precision)


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
    policy: Policy,
    algorithm: object = GRPO(beta=0.0),
    signals: list[Signal] = SIGNALS,
    *,
    share_prefix: bool = True,
    **options: object,
) -> tuple[Any, torch.Tensor]:
    policy.forward.share_prefix = share_prefix
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


@pytest.mark.parametrize("lora_rank", [0, 4])
@pytest.mark.parametrize("share_prefix", [True, False])
def test_frozen_layers_have_no_gradient_and_the_others_that_of_full_training(
    share_prefix: bool, lora_rank: int
):
    whole, upper = tiny(lora_rank=lora_rank), tiny(lora_rank=lora_rank)
    upper.freeze_layers(0.5)
    if lora_rank:  # fresh adapters have no gradient in one half
        for parameter in whole.trainable_parameters():
            torch.nn.init.normal_(parameter, std=0.05)
        upper.model.load_state_dict(whole.model.state_dict())
    for policy in (whole, upper):
        gradients(policy, share_prefix=share_prefix)
    expected = {
        name: p.grad for name, p in whole.trainable().items() if "layers.1." in name or ".norm." in name
    }
    found = {name: p.grad for name, p in upper.trainable().items()}
    assert found.keys() >= expected.keys()
    assert not any("layers.0." in name or "embed" in name for name in found)
    for name, gradient in expected.items():
        assert relative(found[name], gradient) < 1e-5, name
    prefix = upper.forward.prefix([1, 2, 3])
    assert [keys.requires_grad for keys, _ in prefix.leaves().keys_values] == [False, True]


def test_kl_estimators_are_logged_beyond_the_loss_s_clamp():
    """ARENA's Figure 4: a token of which the reference was far surer is a spike of k3 and not of k2."""
    policy = tiny()
    policy.freeze_reference()
    ref = [values + 30 for values in compute_logprobs(policy, GROUP)]  # d = −30; the loss clamps at ±20
    figures, _ = gradients(policy, GRPO(beta=0.1), ref_logprobs=ref)
    assert figures.kl == pytest.approx(-30, rel=1e-4)
    assert figures.k2 == pytest.approx(450, rel=1e-4)
    assert figures.k3 == pytest.approx(math.exp(30) - 31, rel=1e-3)


@pytest.mark.parametrize("budget", [1, 30, 60, 100, 10_000])
def test_micro_batches_change_nothing(budget: int):
    policy = tiny()
    _, whole = gradients(policy)
    figures, split = gradients(policy, micro_batch_tokens=budget)
    assert relative(split, whole) < 1e-5
    assert figures.policy_tokens == sum(t.response_length for t in GROUP)


class Weights(UserList[float]):
    """Weights that count how often one of them is read."""

    reads = 0

    def __getitem__(self, index: Any) -> Any:
        Weights.reads += 1
        return super().__getitem__(index)


def test_weights_are_read_once_however_many_micro_batches_there_are():
    def reads(budget: int) -> int:
        Weights.reads = 0
        counted = [replace(signal, weights=Weights(signal.weights)) for signal in SIGNALS]
        gradients(tiny(), signals=counted, micro_batch_tokens=budget)
        return Weights.reads

    assert reads(1) == reads(10_000) > 0


def expected_logprobs(policy: Policy, trajectory: Trajectory, temperature: float) -> torch.Tensor:
    ids = torch.tensor([trajectory.tokens])
    with torch.no_grad():
        logits = policy.model(ids).logits[0].float() / temperature
    every = torch.log_softmax(logits[:-1], -1).gather(1, ids[0, 1:, None])[:, 0]
    return every[torch.tensor(trajectory.loss_mask[1:])]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(("budget", "temperature"), [(1, 0.7), (10_000, 0.7), (10_000, 0.0)])
def test_logprobs_are_those_of_a_plain_forward_pass(family: str, budget: int, temperature: float):
    policy = tiny(family)
    found = compute_logprobs(policy, GROUP, temperature=temperature, micro_batch_tokens=budget)
    for trajectory, logprobs in zip(GROUP, found, strict=True):
        assert not logprobs.requires_grad
        expected = expected_logprobs(policy, trajectory, temperature or 1.0)
        assert torch.allclose(logprobs, expected, atol=1e-5)


def test_text_of_the_environment_carries_no_loss():
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


def test_idle_signals_and_empty_responses_are_not_computed():
    policy = tiny()
    idle = [Signal(GROUP[0], (0.0,) * GROUP[0].response_length)]
    figures = accumulate_gradients(policy, GRPO(beta=0.0), idle)
    assert (figures.loss, figures.policy_tokens) == (0.0, 0)
    assert all(p.grad is None for p in policy.trainable_parameters())
    silent = Trajectory(Question("q", "?", ()), (Segment("prompt", "", (1, 2, 3)),))
    assert [len(v) for v in compute_logprobs(policy, [silent, GROUP[1]])] == [0, 1]


@pytest.mark.parametrize(
    ("changes", "obstacle"), [({"sliding_window": 8}, "sliding"), ({"sliding_window": None}, "")]
)
def test_sliding_windows_are_computed_as_plain_rows(changes: dict[str, int | None], obstacle: str):
    policy = tiny("Mistral", **changes)
    figures, found = gradients(policy)
    assert obstacle in policy.forward.obstacle
    assert figures.shared == (0.0 if obstacle else 1.0)
    assert relative(found, gradients(policy, share_prefix=False, micro_batch_tokens=1)[1]) < 1e-5


def test_gradient_checkpointing_computes_plain_rows_with_the_same_gradients():
    _, expected = gradients(tiny())
    model = tiny().model
    model.config.attention_dropout = 0.5
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = 0.5  # would act in the training mode that checkpointing needs
    policy = Policy(model, precision="float32", gradient_checkpointing=True)
    figures, found = gradients(policy)
    assert (figures.shared, policy.forward.obstacle) == (0.0, "gradient checkpointing keeps no cache")
    assert relative(found, expected) < 1e-5
    assert not policy.model.training


def test_a_model_whose_cache_is_its_own_is_computed_as_plain_rows():
    policy = tiny("Mamba", hidden_size=16, state_size=4)
    figures, found = gradients(policy)
    assert policy.forward.obstacle
    assert figures.shared == 0.0
    assert relative(found, gradients(policy, micro_batch_tokens=1)[1]) < 1e-5


@pytest.mark.parametrize("share_prefix", [True, False])
def test_capped_logits_are_those_of_the_whole_model(share_prefix: bool):
    plain = {"head_dim": 8, "layer_types": ["full_attention"] * 2}
    policy = tiny("Gemma2", final_logit_softcapping=0.05, **plain)
    policy.forward.share_prefix = share_prefix
    found = compute_logprobs(policy, GROUP, temperature=0.7)
    for trajectory, logprobs in zip(GROUP, found, strict=True):
        assert torch.allclose(logprobs, expected_logprobs(policy, trajectory, 0.7), atol=1e-5)


def test_trials_are_made_once():
    policy = tiny()
    assert policy.forward.obstacle == ""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    policy.causal_lm.get_decoder().register_forward_hook(count)  # type: ignore[operator]
    compute_logprobs(policy, GROUP[:3])
    assert calls == 2, "the prefix and the suffixes"


def test_chunks_of_logits_change_nothing(monkeypatch: pytest.MonkeyPatch):
    figures, whole = gradients(tiny())
    monkeypatch.setattr("sleuth.training.update.forward.CHUNK", 97 * 3)
    monkeypatch.setattr("sleuth.training.update.forward.KEPT", 97 * 10)
    split, found = gradients(tiny())
    assert relative(found, whole) < 1e-6
    assert split.entropy == pytest.approx(figures.entropy, rel=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_bfloat16_gradients_point_the_same_way(family: str):
    policy = tiny(family, precision="bfloat16")
    assert all(p.dtype == torch.float32 for p in policy.trainable_parameters())
    figures, shared = gradients(policy)
    _, plain = gradients(policy, share_prefix=False)
    _, exact = gradients(tiny(family))
    assert figures.shared == 1.0
    for found in (shared, plain):
        assert float(torch.nn.functional.cosine_similarity(found, exact, dim=0)) > 0.99


@pytest.mark.parametrize(
    ("prompt", "token", "message"),
    [
        ((1,), -1, "'q7': token -1 is not in the model's vocabulary of 97"),
        ((1,), 97, "'q7': token 97 is not in the model's vocabulary of 97"),
        ((), 5, "without a prompt"),
    ],
)
def test_rows_that_the_model_cannot_compute_are_refused(prompt: tuple[int, ...], token: int, message: str):
    segments = (Segment("prompt", "", prompt), Segment("policy", "", (token,)))
    with pytest.raises(TrainingError, match=message):
        compute_logprobs(tiny(), [Trajectory(Question("q7", "?", ()), segments)])


def test_lengths_must_agree():
    policy = tiny()
    with pytest.raises(TrainingError, match="'q20'"):
        accumulate_gradients(policy, SFT(), [Signal(GROUP[0], (1.0,))])
    with pytest.raises(TrainingError, match="'q20'"):
        accumulate_gradients(policy, GRPO(beta=0.0), SIGNALS[:1], old_logprobs=[torch.zeros(2)])


def test_a_penalty_needs_the_reference():
    with pytest.raises(ConfigError, match="reference"):
        accumulate_gradients(tiny(), GRPO(beta=0.1), SIGNALS)
