import io
from pathlib import Path
from types import ModuleType

import pytest
import torch
from rich.console import Console

from sleuth.algorithms.dpo import DPO
from sleuth.algorithms.pairs import Pair
from sleuth.algorithms.preference_model import preference_loss
from sleuth.errors import TrainingError
from sleuth.training.log import RunLog
from sleuth.training.optimiser import Optimiser, Schedule
from sleuth.training.phase import Phase
from sleuth.training.policy import Policy
from sleuth.training.preferences import PreferenceModel, encode_turns, train_on_pairs
from sleuth.training.state import TrainingState
from sleuth.training.stopping import Budget
from sleuth.training.update import compute_logprobs
from sleuth.types import Question, Segment, Trajectory


def turn(*written: int, context: tuple[int, ...] = (1, 2, 3)) -> Trajectory:
    segments = (Segment("prompt", "", context), Segment("policy", "", written))
    return Trajectory(Question("q", "?", ()), segments)


PAIRS = [Pair(turn(4, 5), turn(6, 7, 8), 1.0), Pair(turn(5, context=(9, 1)), turn(7, context=(9, 1)), 0.5)]


@pytest.fixture
def policy(toy: ModuleType) -> Policy:
    """A random two-layer Llama."""
    fresh: Policy = toy.new_learner()[0]
    return fresh


def epoch(folder: Path, policy: Policy, algorithm: DPO, **options: object) -> dict[str, float]:
    optimiser = Optimiser(policy.trainable_parameters(), Schedule(3e-3, 1))
    with RunLog(folder, console=Console(file=io.StringIO())) as log:
        state = TrainingState(policy, optimiser, folder / "state", {})
        phase = Phase("test", 1, 0, log, state, lambda: False, Budget(None))
        settings = {"seed": 0, "temperature": 1.0, "micro_batch_tokens": 64, "pairs": PAIRS} | options
        return train_on_pairs(policy, algorithm, settings.pop("pairs"), phase, **settings)  # type: ignore[arg-type]


def margins(policy: Policy) -> list[float]:
    sides = [side for pair in PAIRS for side in (pair.chosen, pair.rejected)]
    sums = [float(values.sum()) for values in compute_logprobs(policy, sides)]
    return [a - b for a, b in zip(sums[::2], sums[1::2], strict=True)]


def weights(policy: Policy) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in policy.trainable_parameters()])


@pytest.mark.parametrize("reference_free", [True, False])
def test_an_epoch_widens_the_margins(tmp_path: Path, policy: Policy, reference_free: bool):
    policy.freeze_reference()
    before = margins(policy)
    figures = epoch(tmp_path, policy, DPO(reference_free=reference_free))
    assert all(after > b for after, b in zip(margins(policy), before, strict=True))
    assert (figures["update/pairs"], figures["update/made"]) == (2.0, 1.0)
    if not reference_free:
        # Nothing has moved from the reference yet: −log σ(0).
        assert figures["update/loss"] == pytest.approx(0.693147, abs=1e-5)


def test_batches_are_optimiser_steps(tmp_path: Path, policy: Policy):
    assert epoch(tmp_path, policy, DPO(reference_free=True, update_pairs=1))["update/made"] == 2.0


@pytest.mark.parametrize("reference_free", [True, False])
def test_an_epoch_in_bfloat16_widens_the_margins(tmp_path: Path, toy: ModuleType, reference_free: bool):
    policy, _ = toy.new_learner(precision="bfloat16")
    policy.freeze_reference()
    before = margins(policy)
    epoch(tmp_path, policy, DPO(reference_free=reference_free))
    assert all(after > b for after, b in zip(margins(policy), before, strict=True))


def updates(toy: ModuleType, folder: Path, precision: str) -> list[torch.Tensor]:
    """What one epoch changes in the weights, with micro-batches of one row and of all rows."""
    changes = []
    for tokens in (1, 64):
        policy, _ = toy.new_learner(precision=precision)
        start = weights(policy)
        epoch(folder / str(tokens), policy, DPO(reference_free=True), micro_batch_tokens=tokens)
        changes.append(weights(policy) - start)
    return changes


def test_micro_batches_change_nothing(tmp_path: Path, toy: ModuleType):
    assert torch.allclose(*updates(toy, tmp_path, "float32"), atol=2e-4)


def test_micro_batches_in_bfloat16_update_in_one_direction(tmp_path: Path, toy: ModuleType):
    assert float(torch.cosine_similarity(*updates(toy, tmp_path, "bfloat16"), dim=0)) > 0.98


def test_no_pairs_no_update(tmp_path: Path, policy: Policy):
    before = margins(policy)
    assert epoch(tmp_path, policy, DPO(), pairs=[]) == {"update/made": 0.0, "update/pairs": 0.0}
    assert margins(policy) == before


def test_the_encoder_is_frozen_and_knows_no_neighbours(policy: Policy):
    with pytest.raises(TrainingError, match="reference"):
        encode_turns(policy, [turn(4)], 64)
    policy.freeze_reference()
    turns = [turn(4, 5), turn(6, 7, 8, 9, 10), turn(4)]
    states = encode_turns(policy, turns, 64)
    assert states.shape == (3, 32)
    with torch.no_grad():
        for parameter in policy.trainable_parameters():
            parameter.add_(1.0)
    alone = torch.cat([encode_turns(policy, [t], 1) for t in turns])
    assert torch.allclose(states, alone, atol=1e-5)


def test_the_heads_learn_a_ranking():
    torch.manual_seed(0)
    direction = torch.randn(16)
    states = torch.randn(40, 16)
    order = (states @ direction).argsort(descending=True).tolist()
    pairs = list(zip(order[:20], order[20:], strict=True))
    model = PreferenceModel(16, 1e-2, seed=0)
    first = model.fit(states, pairs, 8, seed=0)
    for seed in range(1, 20):
        last = model.fit(states, pairs, 8, seed)
    assert first["preference/loss"] == pytest.approx(0.693, abs=0.02)
    assert last["preference/loss"] < 0.3
    assert last["preference/accuracy"] == 1.0
    values = model.values(states)
    assert all(values[better] > values[worse] for better, worse in pairs)
    assert model.fit(states, [], 8, 0) == {"preference/pairs": 0.0}


def test_heads_are_saved_and_taken_up():
    model, other = PreferenceModel(8, 1e-3, seed=0), PreferenceModel(8, 1e-3, seed=1)
    other.load_state(model.state())
    states = torch.randn(3, 8)
    assert model.values(states) == other.values(states)
    with pytest.raises(TrainingError, match="another encoder"):
        PreferenceModel(9, 1e-3, seed=0).load_state(model.state())
    assert float(preference_loss(torch.zeros(1, 7), torch.zeros(1, 7))) == pytest.approx(0.693147)
