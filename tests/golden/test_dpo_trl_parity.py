"""DPO's loss and gradient equal those of TRL's DPOTrainer, on the same model, reference and tokens, in float32."""

from typing import Any

import pytest
import torch
from torch import Tensor

from sleuth.algorithms.pairwise import signals_of
from sleuth.recipes.evo_rag.dpo import DPO
from sleuth.training.policy import Policy
from sleuth.training.update.gradients import accumulate_gradients, compute_logprobs
from sleuth.types import Question, Segment, Trajectory
from support.trl import SETTINGS, tiny_llama, word_tokenizer

pytestmark = pytest.mark.slow  # importing TRL takes longer than all other tests of this room

VOCABULARY = 53
BETA = 0.1


def side(context: int, written: int, seed: int) -> Trajectory:
    generator = torch.Generator().manual_seed(seed)

    def draw(count: int) -> tuple[int, ...]:
        return tuple(torch.randint(4, VOCABULARY, (count,), generator=generator).tolist())

    shared = torch.Generator().manual_seed(context)
    prompt = tuple(torch.randint(4, VOCABULARY, (context,), generator=shared).tolist())
    return Trajectory(
        Question("q", "?", ()), (Segment("prompt", "", prompt), Segment("policy", "", draw(written)))
    )


PAIRS = [(side(12, 5, 1), side(12, 9, 2)), (side(7, 3, 3), side(7, 1, 4)), (side(20, 8, 5), side(20, 8, 6))]
SIDES = [trajectory for pair in PAIRS for trajectory in pair]


def tiny(seed: int) -> Any:
    return tiny_llama(VOCABULARY, seed).eval()


@pytest.fixture(scope="module")
def trainer(trl: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A DPOTrainer; only its loss is used."""
    datasets = pytest.importorskip("datasets")
    return trl.DPOTrainer(
        model=tiny(0),
        ref_model=tiny(1),
        args=trl.DPOConfig(output_dir=str(tmp_path_factory.mktemp("trl")), beta=BETA, **SETTINGS),
        train_dataset=datasets.Dataset.from_dict({"prompt": ["w5"], "chosen": ["w6"], "rejected": ["w7"]}),
        processing_class=word_tokenizer(VOCABULARY),
    )


def trl_inputs() -> dict[str, Tensor]:
    """Chosen rows first, then rejected ones, right-padded."""
    ordered = [chosen for chosen, _ in PAIRS] + [rejected for _, rejected in PAIRS]
    width = max(len(t.tokens) for t in ordered)

    def pad(rows: list[list[int]]) -> Tensor:
        return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])

    return {
        "input_ids": pad([t.tokens for t in ordered]),
        "attention_mask": pad([[1] * len(t.tokens) for t in ordered]),
        "completion_mask": pad([[int(own) for own in t.loss_mask] for t in ordered]),
    }


def gradient(model: Any) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("reference_free", [False, True])
def test_loss_and_gradient(trainer: Any, reference_free: bool):
    inputs = trl_inputs()
    trainer.model.eval()
    trainer.model.zero_grad()
    trainer.precompute_ref_logps = reference_free
    if reference_free:
        # The formula as printed is TRL's with a reference that finds everything equally likely.
        inputs |= {"ref_chosen_logps": torch.zeros(3), "ref_rejected_logps": torch.zeros(3)}
    theirs = trainer._compute_loss(trainer.model, inputs, return_outputs=False)
    theirs.backward()

    # Not copies of the trainer's models: TRL has patched their forward passes.
    policy = Policy(tiny(1), precision="float32")
    policy.freeze_reference()
    with torch.no_grad():
        for own, other in zip(policy.model.parameters(), tiny(0).parameters(), strict=True):
            own.copy_(other)
    algorithm = DPO(beta=BETA, reference_free=reference_free)

    def sums(reference: bool) -> list[float]:
        return [float(values.sum()) for values in compute_logprobs(policy, SIDES, reference=reference)]

    references = sums(True) if algorithm.needs_reference else None
    signals, figures = algorithm.weigh(signals_of(PAIRS), sums(False), references)
    assert figures["loss"] == pytest.approx(theirs.item(), rel=1e-5)
    accumulate_gradients(policy, algorithm, signals)
    difference = (gradient(policy.model) - gradient(trainer.model)).norm() / gradient(trainer.model).norm()
    assert float(difference) < 1e-4
