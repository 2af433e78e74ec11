"""Scales and GRPO on two CPU cores with SmolLM2-135M."""

from dataclasses import replace
from typing import Any

from sleuth.algorithms.grpo import GRPO
from sleuth.scale import Scale

# Search agents: two short passages a search, four short turns.
SEARCH_AGENT = Scale(
    model="smollm2-135m-instruct",
    train_data="factbook:train",
    eval_data="factbook:dev",
    top_k=2,
    max_steps=4,
    max_new_tokens=112,  # the longest demonstration has 110
    max_passage_tokens=256,
    max_context=1536,
    warm_start_examples=80,
    warm_start_batch=4,
    warm_start_lr=1e-4,
    rollout_batch=50,
    micro_batch_tokens=2048,  # activations of 2,048 tokens take about 3 GB
    eval_questions=100,
)
# Methods that read given passages in one turn.
GIVEN_PASSAGES = replace(
    SEARCH_AGENT,
    train_data="factbook-distractor:train",
    eval_data="factbook-distractor:dev",
    top_k=5,
    max_steps=1,
    max_new_tokens=264,  # the longest demonstration has 261
    max_passage_tokens=500,
    max_context=1024,
    warm_start_examples=120,
    rollout_batch=32,
)


def selected(scale: Scale, **settings: Any) -> Scale:
    """A scale for GRPO on questions that sometimes succeed.

    Measured to help (docs/runs.md). The upper layers alone learn as much from a step that takes half the time. The
    last weights are kept, since few dev questions cannot rank two checkpoints.
    """
    measured = {
        "candidates": 1280,
        "measure": False,
        "steps": 96,
        "warm_start_epochs": 3,
        "batch": 12,
        "temperature": 1.0,
        "refill": 1.0,
        "lr": 3e-5,
        "lr_warmup": 0.1,  # Adam's first steps are as long as the rate: at all of it one seed lost half its format
        "frozen_layers": 0.5,
        "save_every": 3,
    }
    return replace(scale, **measured | settings)


# Three epochs of the demonstrations: after one (20 updates) AutoRefine's warm start had EM 10.8, after three 43.6, and
# Eval-RAR's 22.6 and 44.6, more than one epoch and GRPO reached (40.8).
#
# After three epochs a policy hardly explores: with 80 candidates at temperature 0.8 most groups were dead from step 9 on,
# and Search-R1 gained 4.8 points in 24 steps and lost on intersections. In 48 steps at temperature 1 it gained 7.4 on
# 160 measured candidates and 9.0 on 640 that were not measured; as many steps again, on other questions, end higher.
SEARCH_GRPO = selected(SEARCH_AGENT)
GIVEN_GRPO = selected(GIVEN_PASSAGES, rollout_batch=48)


def few_steps(algorithm: GRPO) -> GRPO:
    """A paper's GRPO for tens of steps.

    No KL term: at 0.001 it has no effect in so few, and each rollout would need its reference. r − mean: division by
    the deviation gained less (docs/runs.md). Half of each group: the update takes longer than the rollouts.
    """
    return replace(algorithm, beta=0.0, group_size=6, scale="none", drop_zero_variance=True, train_on=3)
