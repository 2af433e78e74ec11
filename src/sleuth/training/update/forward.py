"""Differentiable forward passes in which rows share a prefix.

The prefix runs once, as one row. Its keys, values and last state become leaves that any number
of suffix batches attend to. The gradients that these leaves collect then pass through the prefix
once. They are those of plain rows, and no batch's activations outlive its own backward pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers.cache_utils import Cache, DynamicCache

from sleuth.algorithms.objectives import entropy
from sleuth.engines.decoding.attention import grouped
from sleuth.engines.decoding.suitability import mismatch, unsuited
from sleuth.errors import TrainingError
from sleuth.training.update.layout import Row

CHUNK = 1 << 24
"""Most logits (tokens × vocabulary) computed at a time: 64 MiB in float32."""
KEPT = 1 << 27
"""Most logits kept for the backward pass; above it they are computed again instead."""


PASS: dict[torch.dtype | None, int] = {None: 48, torch.bfloat16: 512}
"""Tokens that cost as much as the fixed part of a pass, by autocast's type.

The fixed part is the work on every weight: adding to its gradient and casting it.
Measured on CPU with 135M parameters: 30 in float32; 400–1,000 in bfloat16, the more the busier the memory is.
"""


class TokenFigures(NamedTuple):
    """Per policy token of a batch, row after row, shape [M], float32."""

    logprobs_M: Tensor
    entropy_M: Tensor
    """Carries no gradient."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Keys, values and last state of a prefix that was computed once."""

    length: int
    last_D: Tensor
    """State of its last token, which predicts each suffix's first."""
    keys_values: list[tuple[Tensor, Tensor]]
    """Per layer, each [1, heads, length, head_dim]."""

    def leaves(self) -> Prefix:
        """The same numbers, detached from the graph, ready to collect gradients where the prefix can use them."""
        last, *others = (tensor.detach().requires_grad_(tensor.requires_grad) for tensor in self._tensors())
        return Prefix(self.length, last, list(zip(others[::2], others[1::2], strict=True)))

    def backward(self, leaves: Prefix) -> None:
        """Backpropagate the gradients that `leaves` collected through the prefix."""
        pairs = [
            (own, leaf.grad)
            for own, leaf in zip(self._tensors(), leaves._tensors(), strict=True)
            if leaf.grad is not None and own.requires_grad
        ]
        if pairs:
            torch.autograd.backward([own for own, _ in pairs], [gradient for _, gradient in pairs])

    def _tensors(self) -> list[Tensor]:
        return [self.last_D, *(t for pair in self.keys_values for t in pair)]


class PrefixCache(Cache):  # type: ignore[misc]
    """A transformers cache that puts a prefix's keys and values before those of N suffixes; holds nothing else."""

    def __init__(self, prefix: Prefix) -> None:
        super().__init__(layers=[])
        self._prefix = prefix

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """Keys and values [N, heads, length + S, head_dim]; autograd sums the gradients of the rows."""
        count = key_states.shape[0]
        keys, values = self._prefix.keys_values[layer_idx]
        return (
            torch.cat([keys.expand(count, -1, -1, -1), key_states], dim=2),
            torch.cat([values.expand(count, -1, -1, -1), value_states], dim=2),
        )

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._prefix.length


class Forward:
    """Runs a causal language model in training; finds out once whether it can share prefixes."""

    def __init__(self, model: Any, autocast_dtype: torch.dtype | None, gradient_checkpointing: bool) -> None:
        """`model` is a Hugging Face causal language model, adapters inside it included."""
        self._model = model
        self._pass: Callable[[Callable[[], Any]], Any] = lambda work: work()
        self._vocabulary: int = self._model.get_input_embeddings().num_embeddings
        self.autocast_dtype = autocast_dtype
        self.gradient_checkpointing = gradient_checkpointing
        self.share_prefix = True
        """Whether rows may share a prefix; changes cost, never gradients."""
        self.pass_tokens = PASS[autocast_dtype]
        """Tokens that cost as much as the fixed part of a pass."""
        self.is_sharded = False
        """Whether all ranks must make the same passes."""
        self.device = next(model.parameters()).device

    def make_trials(self) -> None:
        """Make the trials of the model now, which otherwise happen at first use."""
        _ = self.obstacle, self._has_plain_head

    def skip_trials(self) -> None:
        """Assume that the output layer is one matrix, without a trial: a model without values cannot have one."""
        self._has_plain_head = True

    def use(self, model: Any, sharded: Callable[[Callable[[], Any]], Any]) -> None:
        """Run `model`, whose parameters ranks divide, from now on; `sharded` runs a pass and gathers them for it."""
        self._model, self._pass, self.is_sharded = model, sharded, True

    @contextmanager
    def arithmetic(self) -> Iterator[None]:
        """The precision of every forward pass, so that old and new log-probabilities agree."""
        # Transformers recomputes activations in training mode only.
        self._model.train(self.gradient_checkpointing and torch.is_grad_enabled())
        try:
            with (
                # Activations are computed again outside this context, and must then be the same.
                nullcontext() if self.gradient_checkpointing else grouped(self._model.config),
                torch.autocast(
                    self.device.type,
                    dtype=self.autocast_dtype or torch.bfloat16,
                    enabled=self.autocast_dtype is not None,
                ),
            ):
                yield
        finally:
            self._model.eval()

    def check(self, item: Row, question: str) -> None:
        """Raise TrainingError for a row that the model cannot compute or that would teach nonsense."""
        if item.targets[0] == 0:
            raise TrainingError(f"question {question!r}: a trajectory without a prompt cannot be trained on")
        foreign = [t for t in (min(item.tokens), max(item.tokens)) if not 0 <= t < self._vocabulary]
        if foreign:
            raise TrainingError(
                f"question {question!r}: token {foreign[0]} is not in the model's vocabulary of {self._vocabulary}"
            )

    @cached_property
    def obstacle(self) -> str:
        """Why this model cannot share a prefix; "" if it can and a trial gave the numbers of a plain pass."""
        if self.gradient_checkpointing:
            return "gradient checkpointing keeps no cache"
        if reason := unsuited(self._model, windows=False):
            return reason
        ids = [(7 * i + 3) % self._vocabulary for i in range(9)]
        with torch.no_grad(), self.arithmetic():
            plain = self._suffix_states([ids], None)[0, 3:]
            return mismatch(
                "shared prefix",
                lambda: self._suffix_states([ids[4:]], self.prefix(ids[:4]))[0],
                plain,
                self.autocast_dtype or torch.float32,
            )

    def prefix(self, tokens: Sequence[int]) -> Prefix:
        """Compute a prefix as one row, in the graph unless gradients are off."""

        def work() -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
            cache = DynamicCache()
            ids = torch.tensor([tokens], device=self.device)
            states = self._states(input_ids=ids, past_key_values=cache, use_cache=True)
            return states[0, -1], [(layer.keys, layer.values) for layer in cache.layers]

        with self.arithmetic():
            return Prefix(len(tokens), *self._pass(work))

    def tokens(self, rows: Sequence[Row], prefix: Prefix | None, temperature: float) -> TokenFigures:
        """log π and entropy of the policy tokens of rows that passed `check`; see TokenFigures."""
        with self.arithmetic():
            figures: TokenFigures = self._pass(partial(self._tokens, rows, prefix, temperature))
        return figures

    def _tokens(self, rows: Sequence[Row], prefix: Prefix | None, temperature: float) -> TokenFigures:
        start = prefix.length if prefix else 0
        device = self.device
        states_N_S_D = self._suffix_states([item.tokens[start:-1] for item in rows], prefix)
        # State s of a row predicts the token s + 1 places after the prefix; s places after it
        # if the prefix's last state comes first.
        offset = start if prefix else 1
        row_M = torch.tensor([n for n, item in enumerate(rows) for _ in item.targets], device=device)
        column_M = torch.tensor([t - offset for item in rows for t in item.targets], device=device)
        targets_M = torch.tensor([item.tokens[t] for item in rows for t in item.targets], device=device)
        return self._score(states_N_S_D[row_M, column_M], targets_M, temperature)

    def _states(self, **inputs: Any) -> Tensor:
        """Final hidden states [N, S, D]; whole logits [N, S, V] where the output layer is more than a matrix."""
        if self._has_plain_head:
            states: Tensor = self._model.get_decoder()(**inputs).last_hidden_state
        else:
            states = self._model(**inputs).logits
        return states

    def _logits(self, states: Tensor) -> Tensor:
        logits: Tensor = self._model.get_output_embeddings()(states) if self._has_plain_head else states
        return logits

    @cached_property
    def _has_plain_head(self) -> bool:
        """Whether logits are the output layer of the states and nothing more, found by one trial.

        Gemma 2 caps its logits and Cohere scales them. Theirs come from the model as a whole,
        at the price of logits for every token.
        """
        model = self._model
        if model.get_output_embeddings() is None:
            return False
        ids = torch.tensor([[1, 2, 3]], device=self.device) % self._vocabulary
        with torch.no_grad(), self.arithmetic():
            expected = model(input_ids=ids, use_cache=False).logits
            states = model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state
            found = model.get_output_embeddings()(states)
        # Bit for bit: a cap is almost invisible in the small logits of an untrained model.
        return torch.equal(expected.float(), found.float())

    def _suffix_states(self, suffixes: Sequence[Sequence[int]], prefix: Prefix | None) -> Tensor:
        """States [N, S, D] of right-padded rows; with a prefix, its last state comes first."""
        device = self.device
        # Sharded layers must run on every rank, even where the prefix's last state is all that is needed.
        width = max(int(self.is_sharded), *(len(s) for s in suffixes))
        # Padding comes last and attention looks back only, so that no mask is needed for it.
        ids = torch.tensor([[*s, *[0] * (width - len(s))] for s in suffixes], dtype=torch.long, device=device)
        if prefix is None:
            return self._states(input_ids=ids, use_cache=False)
        first = prefix.last_D.expand(len(suffixes), 1, -1)
        if not width:
            return first
        positions_S = torch.arange(prefix.length, prefix.length + width, device=device)
        states = self._states(
            input_ids=ids,
            position_ids=positions_S[None],
            past_key_values=PrefixCache(prefix),
            use_cache=True,
        )
        return torch.cat([first, states], dim=1)

    def _score(self, states_M: Tensor, targets_M: Tensor, temperature: float) -> TokenFigures:
        """Output layer, temperature and log-softmax, a bounded number of logits at a time."""
        size = max(1, CHUNK // self._vocabulary)
        again = torch.is_grad_enabled() and len(states_M) * self._vocabulary > KEPT
        run: Callable[..., tuple[Tensor, Tensor]] = self._score_chunk
        if again:
            run = partial(checkpoint, run, use_reentrant=False)
        chunks = zip(torch.split(states_M, size), torch.split(targets_M, size), strict=True)
        scored = [run(states, targets, temperature) for states, targets in chunks]
        return TokenFigures(*(torch.cat(column) for column in zip(*scored, strict=True)))

    def _score_chunk(self, states: Tensor, targets: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
        logits = self._logits(states).float()
        if temperature not in (0.0, 1.0):
            logits = logits / temperature
        logprobs = logits.log_softmax(dim=-1)
        with torch.no_grad():
            spread = entropy(logprobs)
        return logprobs.gather(-1, targets[:, None])[:, 0], spread
