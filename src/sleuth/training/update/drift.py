"""Drift of the policy from its first weights, on a few episodes of the step."""

import math
from statistics import fmean

from torch import Tensor

from sleuth.scale import Scale
from sleuth.training.figures import Groups, is_trainable, whole_episodes
from sleuth.training.policy import Policy
from sleuth.training.update.gradients import compute_logprobs, sampled_logprobs

DRIFT_EPISODES = 4
"""Episodes on which the drift from the first policy is measured."""


def drift_of(policy: Policy, groups: Groups, plan: Scale, *, were_played: bool) -> dict[str, float]:
    """Estimate of the KL divergence between the policy and the one before the first step.

    Of episodes that were played for the step: k1 of KL(π ‖ π_start), with the log-probabilities that the engine
    gave. Of episodes that the first weights played: k1 of KL(π_start ‖ π), for the weights after the update.
    """
    some = [t for t in whole_episodes(groups) if is_trainable(t)][:DRIFT_EPISODES]

    def computed(*, reference: bool) -> list[Tensor]:
        found = compute_logprobs(
            policy,
            some,
            temperature=plan.temperature,
            reference=reference,
            micro_batch_tokens=plan.micro_batch_tokens,
        )
        # One transfer an episode: reading token by token would wait for a GPU each time.
        return [logprobs.cpu() for logprobs in found]

    start = computed(reference=True)
    sampler, other = (sampled_logprobs(some), start) if were_played else (start, computed(reference=False))
    log_ratios = [(own - its).double().tolist() for own, its in zip(sampler, other, strict=True)]
    ratios = [ratio for row in log_ratios for ratio in row if math.isfinite(ratio)]
    return {"update/kl_start": fmean(ratios)} if ratios else {}
