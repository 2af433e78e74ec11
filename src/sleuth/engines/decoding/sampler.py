"""Choosing tokens by one uniform number per (seed, step) and inverse CDF.

A sample depends on its own context and seed only, never on its neighbours in the batch or their order.
"""

from collections import defaultdict
from collections.abc import Sequence

import torch
from torch import Tensor

from sleuth.engines.base import Sampling
from sleuth.errors import EngineError

_TOP = 512
"""Most likely tokens looked at before sorting a whole vocabulary for top-p."""


def choose(logits: Tensor, sampling: Sampling, draws: Tensor) -> tuple[list[int], list[float]]:
    """Next tokens [B] and their natural-log probabilities [B] from logits [B, V] and draws [B] in [0, 1).

    The log-probability is that of the full distribution at the sampling temperature, before
    top-p; at temperature 1 when greedy. Probabilities are float64: with float32 sums over a large
    vocabulary the tail tokens would be drawn at the wrong rate.
    """
    scaled = logits.double() / (sampling.temperature or 1.0)
    total = torch.logsumexp(scaled, dim=-1, keepdim=True)
    if not bool(torch.isfinite(total).all()):
        raise EngineError("the model's logits are not finite (NaN or infinite weights or activations)")
    if sampling.temperature == 0:
        tokens = logits.argmax(dim=-1)
    else:
        tokens = _inverse_cdf(_nucleus((scaled - total).exp(), sampling.top_p), draws)
    logprobs = (scaled.gather(-1, tokens[:, None]) - total)[:, 0]
    return tokens.tolist(), logprobs.tolist()


def choose_each(
    logits: Tensor, samplings: Sequence[Sampling], draws: Sequence[float]
) -> list[tuple[int, float]]:
    """(token, log-probability) for each row of logits [B, V], with its own sampling settings and draw."""
    found: list[tuple[int, float]] = [(0, 0.0)] * len(samplings)
    groups: dict[tuple[float, float], list[int]] = defaultdict(list)
    for row, sampling in enumerate(samplings):
        groups[sampling.temperature, sampling.top_p].append(row)
    for rows in groups.values():
        some = logits if len(groups) == 1 else logits[rows]
        drawn = torch.tensor([draws[row] for row in rows], dtype=torch.float64, device=logits.device)
        tokens, logprobs = choose(some, samplings[rows[0]], drawn)
        for row, token, logprob in zip(rows, tokens, logprobs, strict=True):
            found[row] = (token, logprob)
    return found


def _nucleus(probs: Tensor, top_p: float) -> Tensor:
    """Zero all but the most likely tokens that together reach `top_p`; ties at the edge stay in.

    Tokens keep their id order, so the draw does not depend on how equal probabilities sort.
    """
    if top_p >= 1:
        return probs
    top = probs.topk(min(_TOP, probs.shape[-1]), dim=-1).values
    if bool((top.sum(-1) < top_p).any()):
        top = probs.sort(dim=-1, descending=True).values
    reached = top.cumsum(-1) >= top_p
    # The last entry serves where rounding keeps the sum a hair under top_p.
    last = torch.where(reached.any(-1), reached.int().argmax(-1), top.shape[-1] - 1)
    edge = top.gather(-1, last[:, None])
    return torch.where(probs >= edge, probs, torch.zeros_like(probs))


def _inverse_cdf(weights: Tensor, draws: Tensor) -> Tensor:
    cdf = weights.cumsum(-1)
    total = cdf[:, -1:]
    # u < 1, but u * total may round up to total, which would point past the last token.
    target = torch.minimum(draws[:, None].to(cdf) * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cdf, target, right=True)[:, 0]
