"""SingleDecoder: one sequence at a time over the model's own cache, for models that slots do not suit."""

import copy
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from sleuth.engines.decoding.sampler import choose_each
from sleuth.engines.decoding.turn import Turn


class SingleDecoder:
    """Decodes turns in order; neighbours with equal contexts share the prompt's forward pass."""

    def __init__(self, forward: Callable[..., Any], device: torch.device) -> None:
        """`forward`: input ids [1, S] → the model's output with `logits` and `past_key_values`."""
        self._forward = forward
        self._device = device

    def run(self, take: Callable[[], Sequence[Turn]], give: Callable[[Sequence[Turn]], None]) -> None:
        """Decode until `take` returns no more turns; see SlotDecoder.run."""
        waiting: deque[Turn] = deque()
        context: list[int] | None = None
        prompt: Any = None
        while True:
            waiting.extend(take())
            if not waiting:
                return
            turn = waiting.popleft()
            if turn.context != context:
                context, prompt = turn.context, self._forward(self._ids(turn.context))
            self._decode(turn, prompt)
            give([turn])

    def clear(self) -> None:
        """Nothing is kept between runs."""

    def _decode(self, turn: Turn, prompt: Any) -> None:
        logits: Tensor = prompt.logits
        cache = copy.deepcopy(prompt.past_key_values)
        while not turn.cancelled:
            ((token, logprob),) = choose_each(logits[:, -1], [turn.sampling], turn.draws(1))
            turn.take(token, logprob)
            if turn.stop:
                return
            output = self._forward(self._ids([token]), past_key_values=cache)
            logits, cache = output.logits, output.past_key_values

    def _ids(self, tokens: Sequence[int]) -> Tensor:
        return torch.tensor([tokens], device=self._device)
