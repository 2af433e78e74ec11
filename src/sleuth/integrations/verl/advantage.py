"""Sleuth's group advantages as an estimator of verl, which imports this module in every process."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from verl.trainer.ppo.core_algos import register_adv_est

from sleuth.algorithms.grpo import group_advantages
from sleuth.integrations.verl.settings import ESTIMATOR


@register_adv_est(ESTIMATOR)  # type: ignore[untyped-decorator]
def sleuth_grpo(
    token_level_rewards: Tensor,
    response_mask: Tensor,
    index: Sequence[Any],
    config: Mapping[str, Any],
    **_: Any,
) -> tuple[Tensor, Tensor]:
    """Advantages, twice (verl also logs them as returns), of shape [N, T]; see group_advantages.

    token_level_rewards, response_mask: [N, T]; `index` names the group of each row. A row without
    policy tokens is an episode that faulted or could not be scored: no other is compared with it.
    `config["sleuth"]` holds scale and std_floor. Raises RewardError for a reward that is not finite.
    """
    rewards_N = token_level_rewards.sum(dim=-1).tolist()
    usable_N = response_mask.bool().any(dim=-1).tolist()
    groups: dict[Any, list[int]] = defaultdict(list)
    for row, group in enumerate(index):
        if usable_N[row]:
            groups[group].append(row)
    settings = config["sleuth"]
    advantages_N = torch.zeros(len(rewards_N), dtype=torch.float32, device=token_level_rewards.device)
    for rows in groups.values():
        found = group_advantages([rewards_N[row] for row in rows], settings["scale"], settings["std_floor"])
        advantages_N[rows] = torch.tensor(found, device=advantages_N.device)
    advantages_N_T = advantages_N.unsqueeze(-1) * response_mask
    return advantages_N_T, advantages_N_T
