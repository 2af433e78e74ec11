import math

import pytest
import torch

from sleuth.algorithms.base import TokenBatch
from sleuth.algorithms.sft import SFT
from sleuth.types import Question, Score, Segment, Signal, Trajectory

GOLD = Trajectory(
    Question("q", "?", ()),
    (
        Segment("prompt", "", (1, 2)),
        Segment("policy", "", (3, 4)),
        Segment("world", "", (5,)),
        Segment("policy", "", (6,)),
    ),
)


def test_weight_one_on_policy_tokens_only():
    assert SFT().signals([[GOLD]]) == [Signal(GOLD, (1.0, 1.0, 1.0))]
    assert SFT().normaliser(SFT().signals([[GOLD], [GOLD]])) == 6
    assert SFT().normaliser([]) == 1


def test_unsound_and_empty_trajectories_are_left_out():
    faulted = Trajectory(GOLD.question, GOLD.segments, fault="engine down")
    invalid = GOLD.scored(Score(0.0, {}, "the judge failed"))
    silent = Trajectory(GOLD.question, GOLD.segments[:1])
    assert SFT().signals([[faulted, invalid, silent], []]) == []


def test_loss_is_the_token_mean_of_the_cross_entropy():
    logprobs = torch.tensor([[-1.0, -2.0], [-4.0, math.nan]], requires_grad=True)
    batch = TokenBatch(
        logprobs, torch.tensor([[True, True], [True, False]]), torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    )
    loss = SFT().loss(batch, 3)
    loss.value.backward()
    assert float(loss.value.detach()) == pytest.approx(7 / 3)
    assert logprobs.grad.flatten().tolist() == pytest.approx([-1 / 3, -1 / 3, -1 / 3, 0])


def test_no_reference_and_one_update():
    assert (SFT().group_size, SFT().num_updates, SFT().needs_reference) == (1, 1, False)
    assert SFT().is_idle(Signal(GOLD, (0.0, 0.0, 0.0)))
    assert not SFT().is_idle(Signal(GOLD, (0.0, 0.0, 1.0)))
