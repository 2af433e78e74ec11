"""The update: log-probabilities and gradients of trajectories, each shared prefix computed once.

How the work is arranged (shared prefixes, micro-batches, ranks) changes cost, never gradients.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from sleuth.algorithms.base import Algorithm, Loss, TokenBatch
from sleuth.errors import TrainingError
from sleuth.training.parallel import ranks
from sleuth.training.policy import Policy
from sleuth.training.update.forward import Forward, TokenFigures
from sleuth.training.update.layout import FILLER, Bundle, Row, Shape, aligned, plan, rows_of, shape_of
from sleuth.types import Signal, Trajectory


@dataclass(frozen=True, slots=True)
class UpdateFigures:
    """Figures of one pass over an update's signals; means are over the policy tokens computed."""

    loss: float
    kl: float
    """k1: mean of log π − log π_ref; 0 without a reference."""
    k2: float
    """Mean of ½ (log π − log π_ref)², not clamped as in the loss, so that a spike shows."""
    k3: float
    """Mean of π_ref / π − 1 + log π − log π_ref, not clamped; it may be infinite."""
    entropy: float
    """Nats, at the sampling temperature."""
    ratio: float
    """Mean of π / π_old; 1 on-policy."""
    clip_fraction: float
    """Share of tokens whose gradient the ratio clip removed."""
    gap: float
    """Mean |log π_old − log π_engine| over the tokens with an engine's log-probability; 0 if none is given."""
    gap_k1: float
    """Mean of log π_engine − log π_old over the same: k1 of KL(engine ‖ trainer)."""
    tokens: int
    """Tokens that went through the model, padding included."""
    policy_tokens: int
    """Policy tokens computed: those of signals that cannot change anything are left out."""
    shared: float
    """Share of rows computed after a shared prefix."""


def compute_logprobs(
    policy: Policy,
    trajectories: Sequence[Trajectory],
    *,
    temperature: float = 1.0,
    reference: bool = False,
    micro_batch_tokens: int = 16384,
) -> list[Tensor]:
    """log π of every policy token, one float32 tensor per trajectory; of the reference policy if asked.

    No gradients, and the same arithmetic as the loss. Temperature 0 counts as 1, as when greedy
    log-probabilities are recorded. Raises TrainingError for a trajectory that cannot be computed.
    """
    forward = policy.forward
    own = _own(dict(enumerate(trajectories)))
    found = {i: torch.zeros(t.response_length, device=policy.device) for i, t in own.items()}
    bundles = _plan(forward, own, micro_batch_tokens)
    with policy.as_reference() if reference else nullcontext(), torch.no_grad():
        for bundle in bundles:
            prefix = forward.prefix(bundle.common) if bundle.prefix else None
            for batch in bundle.batches:
                logprobs_M = forward.tokens(batch, prefix, temperature).logprobs_M
                sizes = [len(item.targets) for item in batch]
                for item, logprobs in zip(batch, torch.split(logprobs_M, sizes), strict=True):
                    if item.index != FILLER:
                        found[item.index][item.first : item.first + len(logprobs)] = logprobs
    if ranks.count() > 1:
        parts = ranks.gather(lambda: {i: logprobs.cpu() for i, logprobs in found.items()})
        found = {i: logprobs.to(policy.device) for part in parts for i, logprobs in part.items()}
    return [found[i] for i in range(len(trajectories))]


def sampled_logprobs(trajectories: Sequence[Trajectory]) -> list[Tensor]:
    """log π of every policy token as the engine gave it, one tensor per trajectory; NaN where it gave none."""
    return [
        torch.tensor(
            [
                value
                for _, segment in trajectory.policy_segments()
                for value in segment.logprobs or (math.nan,) * len(segment.tokens)
            ]
        )
        for trajectory in trajectories
    ]


def accumulate_gradients(
    policy: Policy,
    algorithm: Algorithm,
    signals: Sequence[Signal],
    *,
    temperature: float = 1.0,
    micro_batch_tokens: int = 16384,
    old_logprobs: Sequence[Tensor] | None = None,
    ref_logprobs: Sequence[Tensor] | None = None,
    engine_logprobs: Sequence[Tensor] | None = None,
) -> UpdateFigures:
    """Add the gradient of the algorithm's loss over all signals to the parameters' .grad, which must be None.

    Every rank has all signals, computes its part of them, and gets the whole gradient.
    Signals that the algorithm calls idle are not computed, but count in its normaliser.
    `old_logprobs` and `ref_logprobs` are the results of compute_logprobs for the signals'
    trajectories, `engine_logprobs` those of sampled_logprobs. Raises TrainingError where lengths disagree
    or a trajectory cannot be computed.
    """
    _check_lengths(signals, old_logprobs, ref_logprobs, engine_logprobs)
    forward = policy.forward
    normaliser = algorithm.normaliser(signals)
    busy = {
        i: signal.trajectory
        for i, signal in enumerate(signals)
        if signal.weights and not algorithm.is_idle(signal)
    }
    weights = [torch.tensor(signal.weights, dtype=torch.float32) for signal in signals]
    sums: dict[str, float] = defaultdict(float)
    for bundle in _plan(forward, _own(busy), micro_batch_tokens):
        rows = sum(map(len, bundle.batches))
        _add(sums, {"tokens": bundle.num_tokens, "rows": rows, "shared": rows if bundle.prefix else 0})
        prefix = forward.prefix(bundle.common) if bundle.prefix else None
        leaves = prefix.leaves() if prefix else None
        for batch in bundle.batches:
            figures = forward.tokens(batch, leaves, temperature)
            if batch[0].index == FILLER:
                (0.0 * figures.logprobs_M.sum()).backward()  # type: ignore[no-untyped-call]
                continue
            tokens = _token_batch(figures, batch, weights, old_logprobs, ref_logprobs, engine_logprobs)
            loss = algorithm.loss(tokens, normaliser)
            loss.value.backward()  # type: ignore[no-untyped-call]
            _add(sums, _sums(tokens, loss))
        if prefix and leaves:
            prefix.backward(leaves)
    if not policy.is_sharded:
        ranks.sum_gradients(policy.trainable_parameters())
    total: dict[str, float] = defaultdict(float)
    for part in ranks.gather(lambda: sums):
        _add(total, part)
    return _figures(total)


def _own(trajectories: Mapping[int, Trajectory]) -> dict[int, Trajectory]:
    """This rank's part, of about as many tokens as the others'.

    A question's trajectories come one after the other for their shared prefix, so only a question at the border of
    two ranks is divided.
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, trajectory in trajectories.items():
        groups[trajectory.question.dataset, trajectory.question.id].append(i)
    order = [i for group in groups.values() for i in group]
    own = ranks.share(order, [len(trajectories[i].tokens) for i in order])
    return {i: trajectories[i] for i in sorted(own)}


def _plan(forward: Forward, trajectories: Mapping[int, Trajectory], micro_batch_tokens: int) -> list[Bundle]:
    """Bundles of one rank's part; if sharded, with as many passes as every other rank makes."""
    bundles: list[Bundle] = []

    def arrange() -> Shape:
        rows = [row for i, trajectory in trajectories.items() for row in rows_of(i, trajectory)]
        for item in rows:
            forward.check(item, trajectories[item.index].question.id)
        share_prefix = forward.share_prefix and not forward.obstacle
        bundles.extend(
            plan(rows, micro_batch_tokens, share_prefix=share_prefix, pass_tokens=forward.pass_tokens)
        )
        return shape_of(bundles)

    shapes = ranks.gather(arrange)
    return aligned(bundles, shapes) if forward.is_sharded else bundles


def _check_lengths(signals: Sequence[Signal], *logprobs: Sequence[Tensor] | None) -> None:
    for i, signal in enumerate(signals):
        length = signal.trajectory.response_length
        found = [len(signal.weights), *(len(values[i]) for values in logprobs if values is not None)]
        if any(count != length for count in found):
            raise TrainingError(
                f"question {signal.trajectory.question.id!r}: {found} weights and log-probabilities "
                f"for {length} policy tokens"
            )


def _token_batch(
    figures: TokenFigures,
    rows: Sequence[Row],
    weights: Sequence[Tensor],
    old: Sequence[Tensor] | None,
    ref: Sequence[Tensor] | None,
    engine: Sequence[Tensor] | None,
) -> TokenBatch:
    """Policy tokens of the rows, right-padded, as the objective receives them; the values are of whole trajectories."""
    sizes = [len(row.targets) for row in rows]
    device = figures.logprobs_M.device

    def pad(values: Sequence[Tensor]) -> Tensor:
        return pad_sequence(list(values), batch_first=True)

    def part(values: Sequence[Tensor]) -> Tensor:
        """Part of each trajectory's values that belongs to its row."""
        return pad([values[r.index][r.first : r.first + len(r.targets)].to(device) for r in rows])

    return TokenBatch(
        logprobs_N_T=pad(torch.split(figures.logprobs_M, sizes)),
        mask_N_T=pad([torch.ones(size, dtype=torch.bool, device=device) for size in sizes]),
        weights_N_T=part(weights),
        old_logprobs_N_T=None if old is None else part(old),
        ref_logprobs_N_T=None if ref is None else part(ref),
        engine_logprobs_N_T=None if engine is None else part(engine),
        lengths_N=torch.tensor([len(weights[row.index]) for row in rows], device=device),
        entropy_N_T=pad(torch.split(figures.entropy_M, sizes)),
    )


def _add(sums: dict[str, float], more: Mapping[str, float]) -> None:
    for name, value in more.items():
        sums[name] += value


def _sums(tokens: TokenBatch, loss: Loss) -> dict[str, float]:
    """Sums over the policy tokens of one micro-batch."""
    mask = tokens.mask_N_T
    count = int(mask.sum())
    sums = {name: value * count for name, value in loss.metrics.items()}
    sums |= {"loss": float(loss.value.detach()), "policy_tokens": count}
    if tokens.entropy_N_T is not None:
        sums["entropy"] = float(tokens.entropy_N_T[mask].sum())
    if tokens.ref_logprobs_N_T is not None:
        d = (tokens.logprobs_N_T.detach() - tokens.ref_logprobs_N_T)[mask].double()
        sums |= {"kl": float(d.sum()), "k2": float((d * d).sum() / 2)}
        sums["k3"] = float((torch.exp(-d) - 1 + d).sum())
    if tokens.engine_logprobs_N_T is not None:
        old = tokens.logprobs_N_T.detach() if tokens.old_logprobs_N_T is None else tokens.old_logprobs_N_T
        gap = (tokens.engine_logprobs_N_T - old)[mask].double()
        gap = gap[~gap.isnan()]
        sums |= {"gap": float(gap.abs().sum()), "gap_k1": float(gap.sum()), "gap_tokens": len(gap)}
    return sums


def _figures(sums: Mapping[str, float]) -> UpdateFigures:
    count = max(1, int(sums.get("policy_tokens", 0)))
    return UpdateFigures(
        loss=sums.get("loss", 0.0),
        **{name: sums.get(name, 0.0) / count for name in ("kl", "k2", "k3")},
        entropy=sums.get("entropy", 0.0) / count,
        ratio=sums["ratio"] / count if "ratio" in sums else 1.0,
        clip_fraction=sums.get("clip_fraction", 0.0) / count,
        **{name: sums.get(name, 0.0) / max(1, sums.get("gap_tokens", 0)) for name in ("gap", "gap_k1")},
        tokens=int(sums.get("tokens", 0)),
        policy_tokens=int(sums.get("policy_tokens", 0)),
        shared=sums.get("shared", 0) / max(1, sums.get("rows", 0)),
    )
