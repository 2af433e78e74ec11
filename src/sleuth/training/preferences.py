"""Learning from preference pairs: one epoch of the policy (DPO), and the preference model's own epoch.

Both see actions behind their contexts as ordinary one-turn trajectories, so that the two sides
of a pair, and siblings of one state, share the forward pass of their context.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import fmean

import torch
from torch import Tensor

from sleuth.algorithms.dpo import DPO, dpo_loss, pair_logits
from sleuth.algorithms.pairs import Pair
from sleuth.algorithms.preference_model import Heads, accuracy, preference_loss
from sleuth.errors import TrainingError
from sleuth.training.optimiser import Optimiser
from sleuth.training.order import shuffled
from sleuth.training.phase import Phase
from sleuth.training.policy import Policy
from sleuth.training.update import accumulate_gradients, compute_logprobs
from sleuth.types import Trajectory


def train_on_pairs(
    policy: Policy,
    algorithm: DPO,
    pairs: Sequence[Pair],
    phase: Phase,
    *,
    seed: int,
    temperature: float,
    micro_batch_tokens: int,
) -> dict[str, float]:
    """One epoch of DPO over the pairs, in shuffled batches of `algorithm.update_pairs`.

    `temperature` is the one the actions were sampled at. Returns figures named update/…: means
    over the batches. Without pairs nothing is updated. An update whose gradient is not finite is
    dropped and said.
    """
    if not pairs:
        return {"update/made": 0.0, "update/pairs": 0.0}
    order = shuffled(len(pairs), "pairs", seed)
    size = algorithm.update_pairs
    started = time.monotonic()
    rows = []
    for start in range(0, len(order), size):
        if not start:
            phase.check()
        batch = [pairs[i] for i in order[start : start + size]]
        rows.append(_update(policy, algorithm, batch, phase, temperature, micro_batch_tokens))
    figures = {name: fmean(row[name] for row in rows) for name in rows[0]}
    return figures | {
        "update/made": sum(row["update/made"] for row in rows),
        "update/pairs": float(len(pairs)),
        "time/update_s": time.monotonic() - started,
    }


def _update(
    policy: Policy,
    algorithm: DPO,
    batch: Sequence[Pair],
    phase: Phase,
    temperature: float,
    micro_batch_tokens: int,
) -> dict[str, float]:
    """One optimiser step on a batch of pairs."""
    optimiser: Optimiser = phase.state.optimiser
    signals = algorithm.signals([(pair.chosen, pair.rejected) for pair in batch])
    sides = [signal.trajectory for signal in signals]

    def action_logprobs(reference: bool) -> Tensor:
        found = compute_logprobs(
            policy,
            sides,
            temperature=temperature,
            reference=reference,
            micro_batch_tokens=micro_batch_tokens,
        )
        return torch.stack([values.sum() for values in found]).reshape(-1, 2)

    logprobs = action_logprobs(reference=False)
    reference = action_logprobs(reference=True) if algorithm.needs_reference else None
    logits = pair_logits(logprobs, reference, beta=algorithm.beta)
    figures = accumulate_gradients(
        policy,
        algorithm,
        algorithm.weigh(signals, logits.tolist()),
        temperature=temperature,
        micro_batch_tokens=micro_batch_tokens,
    )
    applied = optimiser.step()
    if not applied.made:
        phase.log.say(f"update dropped: the norm of its gradient is {applied.grad_norm}")
    return {
        "update/loss": float(dpo_loss(logits).mean()),
        "update/pair_accuracy": float((logits > 0).float().mean()),
        "update/margin": float(logits.mean()) / algorithm.beta,
        "update/entropy": figures.entropy,
        "update/grad_norm": applied.grad_norm,
        "update/lr": applied.lr,
        "update/made": float(applied.made),
    }


def encode_turns(policy: Policy, turns: Sequence[Trajectory], micro_batch_tokens: int) -> Tensor:
    """The frozen encoder's state of each context and action, [N, D] float32: that of the last token.

    The encoder is the policy's reference, which no update changes. Raises TrainingError if none
    was frozen.
    """
    forward, device = policy.forward, policy.device
    decoder = policy.causal_lm.get_decoder()  # type: ignore[operator]
    order = sorted(range(len(turns)), key=lambda i: -len(turns[i].tokens))
    states: list[Tensor] = [torch.zeros(0)] * len(turns)
    with policy.as_reference(), torch.no_grad(), forward.arithmetic():
        while order:
            width = len(turns[order[0]].tokens)
            count = max(1, micro_batch_tokens // width)
            chosen, order = order[:count], order[count:]
            rows = [turns[i].tokens for i in chosen]
            # Padding comes last and attention looks back only, so that no mask is needed for it.
            ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=device)
            hidden_N_S_D = decoder(input_ids=ids, use_cache=False).last_hidden_state
            for i, row, hidden_S_D in zip(chosen, rows, hidden_N_S_D, strict=True):
                states[i] = hidden_S_D[len(row) - 1].float().cpu()
    return torch.stack(states) if states else torch.zeros(0, 0)


class PreferenceModel:
    """Seven heads on the frozen encoder, trained an epoch at a time."""

    def __init__(self, width: int, lr: float, seed: int) -> None:
        """`width` is the encoder's hidden size."""
        self.heads = Heads(width, seed)
        self._lr = lr

    def fit(
        self, states_N_D: Tensor, pairs: Sequence[tuple[int, int]], batch: int, seed: int
    ) -> dict[str, float]:
        """One epoch over pairs of (better, worse) rows of `states_N_D`; figures named preference/….

        Accuracy and loss are those before the epoch, when none of these pairs has been learnt.
        """
        if not pairs:
            return {"preference/pairs": 0.0}
        better, worse = (states_N_D[[pair[side] for pair in pairs]] for side in (0, 1))
        with torch.no_grad():
            before = self.heads(better), self.heads(worse)
        figures = {
            "preference/pairs": float(len(pairs)),
            "preference/accuracy": accuracy(*before),
            "preference/loss": float(preference_loss(*before)),
        }
        order = torch.tensor(shuffled(len(pairs), "heads", seed))
        # Fresh moments every epoch, so that the heads are all the state there is to save.
        optimiser = torch.optim.AdamW(self.heads.parameters(), lr=self._lr, weight_decay=0.0)
        for rows in torch.split(order, batch):
            loss = preference_loss(self.heads(better[rows]), self.heads(worse[rows]))
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return figures

    def values(self, states_N_D: Tensor) -> list[float]:
        """The mean head's score of each row."""
        with torch.no_grad():
            values: list[float] = self.heads.value(states_N_D).tolist()
        return values

    def state(self) -> dict[str, Tensor]:
        """Weights, for a checkpoint."""
        return {"heads": self.heads.weight_K_D.detach()}

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Take up what `state` gave. Raises TrainingError if it belongs to another encoder."""
        if tensors["heads"].shape != self.heads.weight_K_D.shape:
            raise TrainingError("the checkpoint holds a preference model of another encoder")
        with torch.no_grad():
            self.heads.weight_K_D.copy_(tensors["heads"])
