from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM

from sleuth.errors import ConfigError, TrainingError
from sleuth.training.policy import Policy
from sleuth.training.update.gradients import compute_logprobs
from sleuth.types import Question, Segment, Trajectory
from support import toy

EPISODE = Trajectory(
    Question("q", "?", ()), (Segment("prompt", "", (1, 2, 3)), Segment("policy", "", (4, 5, 6)))
)


def tiny(lora_rank: int = 0, seed: int = 0) -> Policy:
    return Policy(toy.model(seed), lora_rank=lora_rank, precision="float32")


def shake(policy: Policy) -> None:
    with torch.no_grad():
        for parameter in policy.trainable_parameters():
            parameter += 0.1 * torch.randn_like(parameter)


@pytest.mark.parametrize("rank", [0, 4])
def test_the_reference_stays_where_it_was_frozen(rank: int):
    policy = tiny(rank)
    shake(policy)  # as a warm start would
    (before,) = compute_logprobs(policy, [EPISODE])
    policy.freeze_reference()
    shake(policy)
    (after,) = compute_logprobs(policy, [EPISODE])
    (reference,) = compute_logprobs(policy, [EPISODE], reference=True)
    assert torch.equal(reference, before)
    assert not torch.equal(after, before)
    assert torch.equal(compute_logprobs(policy, [EPISODE])[0], after), "the live weights came back changed"


def test_the_reference_must_be_frozen_first():
    with pytest.raises(TrainingError, match="none was frozen"):
        compute_logprobs(tiny(), [EPISODE], reference=True)


@pytest.mark.parametrize("rank", [0, 4])
def test_state_restores_policy_and_reference(rank: int):
    policy = tiny(rank)
    shake(policy)
    policy.freeze_reference()
    shake(policy)
    other = tiny(rank)
    other.load_state(policy.state(), policy.reference)
    for reference in (False, True):
        (a,), (b,) = (compute_logprobs(p, [EPISODE], reference=reference) for p in (policy, other))
        assert torch.equal(a, b)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_resumed_run_with_frozen_layers_has_another_version_than_its_warm_start(share: float):
    policy = tiny()
    shake(policy)
    versions = [policy.version]
    policy.freeze_layers(share)
    for _ in range(100):
        policy.load_state(policy.state())
        versions.append(policy.version)
    assert versions == sorted(set(versions))


def test_a_state_of_another_model_is_refused():
    with pytest.raises(TrainingError, match="another model"):
        tiny().load_state(tiny(4).state())


@pytest.mark.parametrize("rank", [0, 4])
def test_saved_model_computes_the_same(tmp_path: Path, rank: int):
    policy = tiny(rank)
    assert {"lora" in name for name in policy.trainable()} == {bool(rank)}
    shake(policy)
    before = {name: p.detach().clone() for name, p in policy.model.named_parameters()}
    policy.save(tmp_path / "model")
    assert all(torch.equal(before[name], p) for name, p in policy.model.named_parameters())
    policy.save(tmp_path / "model")  # again: replaces the folder, leaves nothing else
    assert [p.name for p in tmp_path.iterdir()] == ["model"]
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    ids = torch.tensor([[1, 2, 3, 4]])
    expected = policy.model(ids).logits
    assert torch.allclose(loaded(ids).logits, expected, atol=1e-5)
    merged, saved = dict(policy.merged()), dict(loaded.named_parameters())
    assert merged.keys() == saved.keys()
    assert all(torch.allclose(merged[name], saved[name], atol=1e-6) for name in saved)
    adapter = tmp_path / "model" / "adapter"
    assert adapter.is_dir() == bool(rank)
    if rank:  # the adapters load on the model they came from as well
        again = PeftModel.from_pretrained(toy.model(), adapter)
        assert torch.allclose(again(ids).logits, expected, atol=1e-6)


def test_adapters_start_from_the_seed_and_leave_the_random_generator_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()

    def start(seed: int) -> torch.Tensor:
        policy = Policy(toy.model(), lora_rank=4, seed=seed)
        return torch.cat([p.detach().flatten() for p in policy.trainable_parameters()])

    torch.set_rng_state(before)
    first = start(0)
    torch.rand(5)
    assert torch.equal(start(0), first)
    assert not torch.equal(start(1), first)
    model = toy.model()
    untouched = torch.get_rng_state()
    Policy(model, lora_rank=4)
    assert torch.equal(torch.get_rng_state(), untouched)


def test_masters_are_float32_whatever_the_model_came_in():
    model = toy.model().to(torch.bfloat16)
    policy = Policy(model, precision="bfloat16")
    assert {p.dtype for p in policy.trainable_parameters()} == {torch.float32}
    assert policy.autocast_dtype == torch.bfloat16
    assert Policy(model, precision="float32").autocast_dtype is None


def test_a_model_with_an_adapter_is_refused():
    with pytest.raises(ConfigError, match="adapter already"):
        Policy(tiny(4).model)
