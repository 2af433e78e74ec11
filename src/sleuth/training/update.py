"""The update: log-probabilities and gradients of trajectories, their shared prefix computed once.

Prefix-shared and plain rows give the same gradients. In the shared form the prefix runs as one
row with its keys and values kept in the graph; the suffixes attend to them, and autograd adds up
what every row sends back. A trajectory whose first token is the policy's cannot occur: a prompt
always comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - torch's own convention
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers.cache_utils import DynamicCache

from sleuth.algorithms.base import Algorithm, TokenBatch
from sleuth.errors import TrainingError
from sleuth.training.layout import MicroBatch, micro_batches
from sleuth.training.policy import Policy
from sleuth.types import Signal, Trajectory

CHUNK = 2048
"""Most tokens whose logits over the whole vocabulary are in memory at a time."""


@dataclass(frozen=True, slots=True)
class UpdateFigures:
    """What one pass over an update's signals showed; means are over policy tokens."""

    loss: float
    kl: float
    """k1: mean of log π − log π_ref; 0 without a reference."""
    entropy: float
    """Nats, at the sampling temperature."""
    ratio: float
    clip_fraction: float
    tokens: int
    """Tokens that went through the model, padding included."""
    policy_tokens: int
    shared: float
    """Share of micro-batches computed behind a shared prefix."""


@dataclass(frozen=True, slots=True)
class _TokenFigures:
    """Per policy token of a micro-batch, row after row, shape [M]."""

    logprobs_M: Tensor
    entropy_M: Tensor


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

    No gradients, and the same arithmetic as the loss.
    """
    found: list[Tensor] = [torch.zeros(0)] * len(trajectories)
    spoken = [i for i, t in enumerate(trajectories) if t.response_length]
    batches = micro_batches(
        [trajectories[i] for i in spoken], micro_batch_tokens, share_prefix=share_prefix and can_share(policy)
    )
    with policy.as_reference() if reference else nullcontext(), torch.no_grad():
        for batch in batches:
            figures = _forward(policy, batch, temperature)
            sizes = [len(s.targets) for s in batch.sequences]
            for row, logprobs in zip(batch.sequences, torch.split(figures.logprobs_M, sizes), strict=True):
                found[spoken[row.index]] = logprobs
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

    How the signals are split into micro-batches changes nothing but memory and speed. Signals
    with no weight at all are skipped when there is no KL term: they have no gradient, but they
    count in the normaliser.
    """
    normaliser = algorithm.normaliser(signals)
    kept = [i for i, s in enumerate(signals) if s.weights and (ref_logprobs is not None or any(s.weights))]
    batches = micro_batches(
        [signals[i].trajectory for i in kept],
        micro_batch_tokens,
        share_prefix=share_prefix and can_share(policy),
    )
    totals = _Totals()
    for batch in batches:
        figures = _forward(policy, batch, temperature)
        chosen = [kept[row.index] for row in batch.sequences]
        tokens = _token_batch(
            figures, [signals[i] for i in chosen], _take(old_logprobs, chosen), _take(ref_logprobs, chosen)
        )
        loss = algorithm.loss(tokens, normaliser)
        loss.value.backward()  # type: ignore[no-untyped-call]
        totals.add(batch, tokens, float(loss.value.detach()), loss.metrics)
    return totals.figures(len(batches))


def can_share(policy: Policy) -> bool:
    """Whether a prefix's keys and values can be computed once and attended to by all rows.

    Not with gradient checkpointing, which keeps no cache, nor where a layer's state is not plain
    attention over the whole context.
    """
    model: Any = policy.causal_lm
    config = model.config.get_text_config(decoder=True)
    if policy.gradient_checkpointing:
        return False
    kinds = getattr(config, "layer_types", None)
    if kinds:
        return all(kind == "full_attention" for kind in kinds)
    windowed = getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
    return not windowed and "ssm" not in str(getattr(config, "model_type", ""))


def _forward(policy: Policy, batch: MicroBatch, temperature: float) -> _TokenFigures:
    """log π and entropy of the batch's policy tokens."""
    rows = batch.sequences
    if any(not row.targets or row.targets[0] == 0 for row in rows):
        raise TrainingError("a trajectory without a prompt or without policy tokens cannot be trained on")
    with policy.arithmetic():
        hidden_N_S, last_prefix = _hidden_states(policy, batch)
        picked = []
        for n, row in enumerate(rows):
            # The state at position t − 1 predicts the token at t.
            before = torch.tensor([t - 1 - batch.prefix for t in row.targets], device=policy.device)
            if last_prefix is not None and int(before[0]) < 0:
                picked += [last_prefix, hidden_N_S[n, before[1:]]]
            else:
                picked.append(hidden_N_S[n, before])
        states_M = torch.cat(picked)
        targets_M = torch.tensor([row.tokens[t] for row in rows for t in row.targets], device=policy.device)
        return _score_tokens(policy.causal_lm, states_M, targets_M, temperature)


def _hidden_states(policy: Policy, batch: MicroBatch) -> tuple[Tensor, Tensor | None]:
    """Final states of the suffixes [N, S, D], and of the last prefix position [1, D] if there is a prefix."""
    decoder: Any = policy.causal_lm.get_decoder()  # type: ignore[operator]
    prefix, device = batch.prefix, policy.device
    suffixes = [torch.tensor(row.tokens[prefix:]) for row in batch.sequences]
    ids_N_S = torch.nn.utils.rnn.pad_sequence(suffixes, batch_first=True).to(device)
    count, width = ids_N_S.shape
    positions_S = torch.arange(prefix, prefix + width, device=device)
    lengths_N = torch.tensor([len(s) for s in suffixes], device=device) + prefix
    mask_N_T = (torch.arange(prefix + width, device=device) < lengths_N[:, None]).long()
    inputs: dict[str, Any] = {"position_ids": positions_S.expand(count, -1), "attention_mask": mask_N_T}
    if not prefix:
        return decoder(input_ids=ids_N_S, use_cache=False, **inputs).last_hidden_state, None
    prefix_ids = torch.tensor([batch.sequences[0].tokens[:prefix]], device=device)
    cache = DynamicCache()
    shared = decoder(input_ids=prefix_ids, use_cache=True, past_key_values=cache)
    expanded = DynamicCache(
        [(la.keys.expand(count, -1, -1, -1), la.values.expand(count, -1, -1, -1)) for la in cache.layers]
    )
    output = decoder(input_ids=ids_N_S, use_cache=True, past_key_values=expanded, **inputs)
    return output.last_hidden_state, shared.last_hidden_state[0, -1:]


def _score_tokens(model: Any, states_M: Tensor, targets_M: Tensor, temperature: float) -> _TokenFigures:
    """Output layer, temperature and log-softmax, a bounded number of tokens at a time."""
    parts = []
    for states, targets in zip(torch.split(states_M, CHUNK), torch.split(targets_M, CHUNK), strict=True):
        # Over several chunks the logits are computed again in the backward pass instead of kept.
        again = len(states_M) > CHUNK and torch.is_grad_enabled()
        arguments = (model, states, targets, temperature or 1.0)
        parts.append(
            checkpoint(_score_chunk, *arguments, use_reentrant=False) if again else _score_chunk(*arguments)
        )
    return _TokenFigures(torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts]))


def _score_chunk(model: Any, states: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    logits = output_logits(model, states).float() / temperature
    logprobs = -F.cross_entropy(logits, targets, reduction="none")
    with torch.no_grad():
        entropy = torch.logsumexp(logits, -1) - (torch.softmax(logits, -1) * logits).sum(-1)
    return logprobs, entropy


def output_logits(model: Any, states: Tensor) -> Tensor:
    """Logits over the vocabulary, with the scalings that some families put behind their output layer."""
    logits: Tensor = model.get_output_embeddings()(states)
    config = model.config.get_text_config(decoder=True)
    if scale := getattr(config, "logit_scale", None):  # Cohere
        logits = logits * scale
    if divisor := getattr(config, "logits_scaling", None):  # Granite
        logits = logits / divisor
    if cap := getattr(config, "final_logit_softcapping", None):  # Gemma 2
        logits = torch.tanh(logits / cap) * cap
    return logits


def _take(values: Sequence[Tensor] | None, indices: Sequence[int]) -> list[Tensor] | None:
    return None if values is None else [values[i] for i in indices]


def _token_batch(
    figures: _TokenFigures, signals: Sequence[Signal], old: list[Tensor] | None, ref: list[Tensor] | None
) -> TokenBatch:
    """Rows of policy tokens only, right-padded: what the objective sees."""
    sizes = [len(signal.weights) for signal in signals]
    device = figures.logprobs_M.device

    def pad(rows: Sequence[Tensor]) -> Tensor:
        return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True)

    def given(rows: list[Tensor] | None) -> Tensor | None:
        return None if rows is None else pad([row.to(device) for row in rows])

    return TokenBatch(
        logprobs_N_T=pad(torch.split(figures.logprobs_M, sizes)),
        mask_N_T=pad([torch.ones(size, dtype=torch.bool, device=device) for size in sizes]),
        weights_N_T=pad([torch.tensor(signal.weights, device=device) for signal in signals]),
        old_logprobs_N_T=given(old),
        ref_logprobs_N_T=given(ref),
        entropy_N_T=pad(torch.split(figures.entropy_M, sizes)),
    )


class _Totals:
    """Sums over micro-batches."""

    def __init__(self) -> None:
        self.loss = 0.0
        self.sums = {"kl": 0.0, "entropy": 0.0, "ratio": 0.0, "clip_fraction": 0.0}
        self.tokens = self.policy_tokens = self.shared = 0

    def add(self, batch: MicroBatch, tokens: TokenBatch, loss: float, metrics: dict[str, float]) -> None:
        mask = tokens.mask_N_T
        count = int(mask.sum())
        self.loss += loss
        self.tokens += batch.num_tokens
        self.policy_tokens += count
        self.shared += batch.prefix > 0
        if tokens.entropy_N_T is not None:
            self.sums["entropy"] += float(tokens.entropy_N_T[mask].sum())
        if tokens.ref_logprobs_N_T is not None:
            self.sums["kl"] += float((tokens.logprobs_N_T.detach() - tokens.ref_logprobs_N_T)[mask].sum())
        for name in ("ratio", "clip_fraction"):
            self.sums[name] += metrics.get(name, 0.0) * count

    def figures(self, num_batches: int) -> UpdateFigures:
        means = {name: total / max(1, self.policy_tokens) for name, total in self.sums.items()}
        return UpdateFigures(
            loss=self.loss,
            tokens=self.tokens,
            policy_tokens=self.policy_tokens,
            shared=self.shared / max(1, num_batches),
            **means,
        )
