"""The update: log-probabilities and gradients of trajectories, each shared prefix computed once.

How the work is laid out (shared prefixes, micro-batches) changes cost, never gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from sleuth.algorithms.base import Algorithm, Loss, TokenBatch
from sleuth.errors import TrainingError
from sleuth.training.policy import Policy
from sleuth.training.update.forward import Forward, TokenFigures
from sleuth.training.update.layout import Bundle, Row, plan, rows_of
from sleuth.types import Signal, Trajectory


@dataclass(frozen=True, slots=True)
class UpdateFigures:
    """What one pass over an update's signals showed; means are over the policy tokens computed."""

    loss: float
    kl: float
    """k1: mean of log π − log π_ref; 0 without a reference."""
    entropy: float
    """Nats, at the sampling temperature."""
    ratio: float
    """Mean of π / π_old; 1 on-policy."""
    clip_fraction: float
    """Share of tokens whose gradient the ratio clip took away."""
    tokens: int
    """Tokens that went through the model, padding included."""
    policy_tokens: int
    """Policy tokens computed: those of signals that cannot change anything are left out."""
    shared: float
    """Share of rows computed behind a shared prefix."""
    obstacle: str = ""
    """Why this model cannot share prefixes, or ""."""


def compute_logprobs(
    policy: Policy,
    trajectories: Sequence[Trajectory],
    *,
    temperature: float = 1.0,
    reference: bool = False,
    micro_batch_tokens: int = 16384,
    share_prefix: bool = True,
) -> list[Tensor]:
    """log π of every policy token, one float32 tensor per trajectory; of the reference policy if asked.

    No gradients, and the same arithmetic as the loss. Temperature 0 counts as 1, as when greedy
    log-probabilities are recorded. Raises TrainingError for a trajectory that cannot be computed.
    """
    forward = policy.forward
    found = [torch.zeros(t.response_length, device=policy.device) for t in trajectories]
    bundles = _plan(forward, trajectories, micro_batch_tokens, temperature, share_prefix)
    with policy.as_reference() if reference else nullcontext(), torch.no_grad():
        for bundle in bundles:
            prefix = forward.prefix(_prefix_tokens(bundle)) if bundle.prefix else None
            for batch in bundle.batches:
                figures = forward.tokens(batch, prefix, temperature)
                for item, logprobs in zip(batch, _split(figures.logprobs_M, batch), strict=True):
                    found[item.index][item.first : item.first + len(logprobs)] = logprobs
    return found


def accumulate_gradients(
    policy: Policy,
    algorithm: Algorithm,
    signals: Sequence[Signal],
    *,
    temperature: float = 1.0,
    micro_batch_tokens: int = 16384,
    share_prefix: bool = True,
    old_logprobs: Sequence[Tensor] | None = None,
    ref_logprobs: Sequence[Tensor] | None = None,
) -> UpdateFigures:
    """Add the gradient of the algorithm's loss over all signals to the parameters' .grad.

    Signals that the algorithm calls idle are not computed, but count in its normaliser.
    `old_logprobs` and `ref_logprobs` are what compute_logprobs gave for the signals'
    trajectories. Raises TrainingError where lengths disagree or nothing can be computed.
    """
    _check_lengths(signals, old_logprobs, ref_logprobs)
    forward = policy.forward
    normaliser = algorithm.normaliser(signals)
    busy = [i for i, signal in enumerate(signals) if signal.weights and not algorithm.is_idle(signal)]
    trajectories = [signals[i].trajectory for i in busy]
    totals = _Totals(forward.obstacle if share_prefix else "")
    for bundle in _plan(forward, trajectories, micro_batch_tokens, temperature, share_prefix):
        totals.add_bundle(bundle)
        prefix = forward.prefix(_prefix_tokens(bundle)) if bundle.prefix else None
        leaves = prefix.leaves() if prefix else None
        for batch in bundle.batches:
            figures = forward.tokens(batch, leaves, temperature)
            tokens = _token_batch(
                figures,
                batch,
                [signals[i].weights for i in busy],
                _only(old_logprobs, busy),
                _only(ref_logprobs, busy),
            )
            loss = algorithm.loss(tokens, normaliser)
            loss.value.backward()  # type: ignore[no-untyped-call]
            totals.add(tokens, loss)
        if prefix and leaves:
            prefix.backward(leaves)
    return totals.figures()


def _plan(
    forward: Forward,
    trajectories: Sequence[Trajectory],
    micro_batch_tokens: int,
    temperature: float,
    share_prefix: bool,
) -> list[Bundle]:
    if temperature < 0:
        raise TrainingError(f"temperature must be 0 or more, not {temperature}")
    if micro_batch_tokens < 1:
        raise TrainingError(f"micro_batch_tokens must be at least 1, not {micro_batch_tokens}")
    rows = [row for i, trajectory in enumerate(trajectories) for row in rows_of(i, trajectory)]
    for item in rows:
        forward.check(item, trajectories[item.index].question.id)
    return plan(rows, micro_batch_tokens, share_prefix=share_prefix and not forward.obstacle)


def _check_lengths(signals: Sequence[Signal], *logprobs: Sequence[Tensor] | None) -> None:
    for i, signal in enumerate(signals):
        length = signal.trajectory.response_length
        found = [len(signal.weights), *(len(values[i]) for values in logprobs if values is not None)]
        if any(count != length for count in found):
            raise TrainingError(
                f"question {signal.trajectory.question.id!r}: {found} weights and log-probabilities "
                f"for {length} policy tokens"
            )


def _prefix_tokens(bundle: Bundle) -> Sequence[int]:
    return bundle.batches[0][0].tokens[: bundle.prefix]


def _split(values_M: Tensor, batch: Sequence[Row]) -> Sequence[Tensor]:
    return torch.split(values_M, [len(item.targets) for item in batch])


def _only(values: Sequence[Tensor] | None, indices: Sequence[int]) -> list[Tensor] | None:
    return None if values is None else [values[i] for i in indices]


def _token_batch(
    figures: TokenFigures,
    rows: Sequence[Row],
    weights: Sequence[Sequence[float]],
    old: list[Tensor] | None,
    ref: list[Tensor] | None,
) -> TokenBatch:
    """Policy tokens of the rows, right-padded: what the objective sees. Other arguments are by trajectory."""
    sizes = [len(row.targets) for row in rows]
    device = figures.logprobs_M.device

    def pad(values: Sequence[Tensor]) -> Tensor:
        return pad_sequence(list(values), batch_first=True)

    def own(values: Sequence[Tensor] | None) -> Tensor | None:
        """The part of each trajectory's values that belongs to its row."""
        if values is None:
            return None
        return pad([values[r.index][r.first : r.first + len(r.targets)].to(device) for r in rows])

    padded = own([torch.tensor(each, dtype=torch.float32) for each in weights])
    assert padded is not None
    return TokenBatch(
        logprobs_N_T=pad(torch.split(figures.logprobs_M, sizes)),
        mask_N_T=pad([torch.ones(size, dtype=torch.bool, device=device) for size in sizes]),
        weights_N_T=padded,
        old_logprobs_N_T=own(old),
        ref_logprobs_N_T=own(ref),
        lengths_N=torch.tensor([len(weights[row.index]) for row in rows], device=device),
        entropy_N_T=pad(torch.split(figures.entropy_M, sizes)),
    )


@dataclass
class _Totals:
    """Sums over micro-batches."""

    obstacle: str
    loss: float = 0.0
    tokens: int = 0
    policy_tokens: int = 0
    rows: int = 0
    shared: int = 0
    sums: dict[str, float] = field(default_factory=dict)

    def add_bundle(self, bundle: Bundle) -> None:
        """Count what is about to be computed."""
        rows = sum(map(len, bundle.batches))
        self.tokens += bundle.num_tokens
        self.rows += rows
        self.shared += rows if bundle.prefix else 0

    def add(self, tokens: TokenBatch, loss: Loss) -> None:
        """Count a micro-batch."""
        mask = tokens.mask_N_T
        count = int(mask.sum())
        self.policy_tokens += count
        self.loss += float(loss.value.detach())
        figures = {name: value * count for name, value in loss.metrics.items()}
        if tokens.entropy_N_T is not None:
            figures["entropy"] = float(tokens.entropy_N_T[mask].sum())
        if tokens.ref_logprobs_N_T is not None:
            figures["kl"] = float((tokens.logprobs_N_T.detach() - tokens.ref_logprobs_N_T)[mask].sum())
        for name, value in figures.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def figures(self) -> UpdateFigures:
        """Means over policy tokens."""

        def mean(name: str) -> float:
            return self.sums.get(name, 0.0) / max(1, self.policy_tokens)

        return UpdateFigures(
            loss=self.loss,
            kl=mean("kl"),
            entropy=mean("entropy"),
            ratio=mean("ratio") if "ratio" in self.sums else 1.0,
            clip_fraction=mean("clip_fraction"),
            tokens=self.tokens,
            policy_tokens=self.policy_tokens,
            shared=self.shared / max(1, self.rows),
            obstacle=self.obstacle,
        )
