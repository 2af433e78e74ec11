"""DPO and the preference model on a small policy: §3.3 and §3.4."""

from pathlib import Path

import pytest
import torch

from sleuth.algorithms.pairwise import log_sigmoid, signals_of
from sleuth.errors import TrainingError
from sleuth.recipes.evo_rag.dpo import DPO
from sleuth.recipes.evo_rag.preference_model import PreferenceModel, accuracy, new_heads, preference_loss
from sleuth.recipes.evo_rag.siblings import Pair, candidates_of
from sleuth.scale import Scale
from sleuth.training.policy import Policy
from sleuth.training.runs.log import RunLog
from sleuth.training.runs.phase import Phase
from sleuth.training.runs.state import TrainingState
from sleuth.training.runs.stopping import Budget
from sleuth.training.update.gradients import compute_logprobs
from sleuth.training.update.optimiser import Optimiser, Schedule
from sleuth.training.update.spend import Arithmetic, spend
from sleuth.types import Action, Question, Score, Segment, Trajectory
from support import toy
from support.toy import weights


def turn(*written: int, context: tuple[int, ...] = (1, 2, 3)) -> Trajectory:
    segments = (Segment("prompt", "", context), Segment("policy", "", written))
    return Trajectory(Question("q", "?", ()), segments)


PAIRS = [Pair(turn(4, 5), turn(6, 7, 8), 1.0), Pair(turn(5, context=(9, 1)), turn(7, context=(9, 1)), 0.5)]


@pytest.fixture
def policy() -> Policy:
    return toy.new_learner()[0]


def epoch(folder: Path, policy: Policy, algorithm: DPO, tokens: int = 64) -> dict[str, float]:
    optimiser = Optimiser(policy.trainable_parameters(), Schedule(3e-3, 1))
    with RunLog(folder, console=toy.quiet()) as log:
        state = TrainingState(policy, optimiser, folder / "state", {})
        phase = Phase("test", 1, 0, log, state, lambda: False, Budget(None))
        signals = signals_of([(pair.chosen, pair.rejected) for pair in PAIRS])
        return spend(policy, algorithm, signals, phase, Arithmetic(1.0, tokens))


def margins(policy: Policy) -> list[float]:
    sides = [side for pair in PAIRS for side in (pair.chosen, pair.rejected)]
    sums = [float(values.sum()) for values in compute_logprobs(policy, sides)]
    return [a - b for a, b in zip(sums[::2], sums[1::2], strict=True)]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("reference_free", [True, False])
def test_an_epoch_widens_the_margins(tmp_path: Path, reference_free: bool, precision: str):
    policy, _ = toy.new_learner(precision=precision)
    policy.freeze_reference()
    before = margins(policy)
    figures = epoch(tmp_path, policy, DPO(reference_free=reference_free))
    assert all(after > b for after, b in zip(margins(policy), before, strict=True))
    assert (figures["update/pairs"], figures["update/made"]) == (2.0, 1.0)
    if not reference_free and precision == "float32":
        # Nothing has moved from the reference yet: −log σ(0).
        assert figures["update/loss"] == pytest.approx(0.693147, abs=1e-5)


def test_batches_are_optimiser_steps(tmp_path: Path, policy: Policy):
    assert epoch(tmp_path, policy, DPO(reference_free=True, update_pairs=1))["update/made"] == 2.0


@pytest.mark.parametrize(("precision", "least"), [("float32", 0.9999), ("bfloat16", 0.98)])
def test_micro_batches_change_nothing_but_rounding(tmp_path: Path, precision: str, least: float):
    changes = []
    for tokens in (1, 64):
        policy, _ = toy.new_learner(precision=precision)
        start = weights(policy)
        epoch(tmp_path / str(tokens), policy, DPO(reference_free=True), tokens=tokens)
        changes.append(weights(policy) - start)
    assert float(torch.cosine_similarity(*changes, dim=0)) > least
    assert precision == "bfloat16" or torch.allclose(*changes, atol=2e-4)


def model_of(policy: Policy, seed: int = 0) -> PreferenceModel:
    scale = Scale(model="", train_data="", eval_data="", seed=seed)
    model = DPO(head_lr=1e-2, update_pairs=8).companion(policy, scale)
    assert isinstance(model, PreferenceModel)
    return model


def test_the_encoder_is_frozen_and_shares_contexts(policy: Policy):
    model, decoder = model_of(policy), policy.causal_lm.get_decoder()
    turns = [turn(4, 5), turn(4, context=(9, 1)), turn(6, 7, 8, 9, 10), turn(4), turn(4, 5)]
    with torch.no_grad():
        whole = [decoder(input_ids=torch.tensor([t.tokens])).last_hidden_state[0, -1] for t in turns]
        for parameter in policy.trainable_parameters():
            parameter.add_(1.0)
    states = model._encode(turns)
    assert states.shape == (5, 32)
    assert torch.allclose(states, torch.stack(whole), atol=1e-5)


def siblings(*totals: float) -> list[Trajectory]:
    """One state whose branches act differently and return `totals`."""
    found = []
    for place, total in enumerate(totals):
        segments = (Segment("prompt", "", (1, 2, 3)), Segment("policy", str(place), (4 + place,)))
        action, fork = (Action("answer", str(place), 1),), 1 if place else -1
        branch = Trajectory(Question("q", "?", ()), segments, action, fork=fork)
        found.append(branch.scored(Score(total, {})))
    return found


def test_the_heads_learn_to_rank_siblings(policy: Policy):
    model, groups = model_of(policy), [siblings(0.0, 1.0, 2.0)]
    first = model.fit(groups, seed=0)
    for seed in range(1, 200):
        last = model.fit(groups, seed)
    assert first["preference/pairs"] == 3.0
    assert first["preference/loss"] == pytest.approx(0.693, abs=0.02)
    assert last["preference/accuracy"] == 1.0
    (ranked,) = model.rank([candidates_of(groups[0])])
    assert ranked[0].value < ranked[1].value < ranked[2].value
    assert model.fit([siblings(1.0, 1.0)], 0) == {"preference/pairs": 0.0}


def test_heads_are_saved_and_restored(policy: Policy):
    model, other = model_of(policy), model_of(policy, seed=1)
    other.load_state(model.state())
    assert torch.equal(model.heads.weight, other.heads.weight)
    with pytest.raises(TrainingError, match="another encoder"):
        other.load_state({"heads": torch.zeros(7, 5)})
    assert float(preference_loss(torch.zeros(1, 7), torch.zeros(1, 7))) == pytest.approx(0.693147)


def test_loss_is_the_mean_over_heads():
    # −log σ(1) = 0.313262, −log σ(−2) = 2.126928, five times −log σ(0) = 0.693147
    chosen = torch.tensor([[1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    rejected = torch.tensor([[0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    expected = (0.313262 + 2.126928 + 5 * 0.693147) / 7
    assert float(preference_loss(chosen, rejected)) == pytest.approx(expected, abs=1e-6)


def test_tied_heads_are_dpo_at_temperature_1():
    # §3.3: "This loss reduces to DPO with temperature 1 if all heads are tied."
    chosen, rejected = torch.full((1, 7), -2.0), torch.full((1, 7), -3.5)
    # The DPO loss of log-probabilities −2 and −3.5 at β = 1 is −log σ(1.5).
    assert float(preference_loss(chosen, rejected)) == pytest.approx(-log_sigmoid(1.5))


def test_heads_are_linear_and_fixed_by_their_seed():
    heads = new_heads(4, seed=3)
    states = torch.randn(5, 4)
    assert heads(states).shape == (5, 7)
    assert torch.allclose(heads(2 * states), 2 * heads(states))
    assert torch.equal(heads.weight, new_heads(4, seed=3).weight)
    assert not torch.equal(heads.weight, new_heads(4, seed=4).weight)
    assert len(set(heads.weight[:, 0].tolist())) == 7


def test_accuracy_counts_the_better_mean():
    chosen = torch.tensor([[1.0, 1.0], [0.0, 0.0], [2.0, -1.0]])
    rejected = torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert accuracy(chosen, rejected) == pytest.approx((1 + 0 + 0.5) / 3)
