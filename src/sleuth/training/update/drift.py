"""Drift of the policy from its first weights, on the episodes that it has just sampled."""

import math
from statistics import fmean

from sleuth.scale import Scale
from sleuth.training.figures import Groups, is_trainable, whole_episodes
from sleuth.training.policy import Policy
from sleuth.training.update.gradients import compute_logprobs, sampled_logprobs

DRIFT_EPISODES = 4
"""Episodes on which the drift from the first policy is measured."""


def drift_of(policy: Policy, groups: Groups, plan: Scale) -> dict[str, float]:
    """Mean log-ratio of the policy that sampled the step's episodes to the one before the first step.

    k1 of KL(π ‖ π_start), on a few episodes, with the log-probabilities that the engine gave.
    """
    some = [t for t in whole_episodes(groups) if is_trainable(t)][:DRIFT_EPISODES]
    start = compute_logprobs(
        policy,
        some,
        temperature=plan.temperature,
        reference=True,
        micro_batch_tokens=plan.micro_batch_tokens,
    )
    # One transfer an episode: reading token by token would wait for a GPU each time.
    ratios = [
        ratio
        for own, other in zip(sampled_logprobs(some), start, strict=True)
        for ratio in (own - other.cpu()).double().tolist()
        if math.isfinite(ratio)
    ]
    return {"update/kl_start": fmean(ratios)} if ratios else {}
