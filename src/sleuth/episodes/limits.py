"""Limits: how far an episode may go."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sleuth.checked import Checked, Positive
from sleuth.errors import ConfigError
from sleuth.scale import Scale


@dataclass(frozen=True, slots=True)
class Limits(Checked):
    """Bounds of one episode, in model turns, passages and tokens."""

    max_steps: Positive = 5
    """Most model turns (N in Eval-RAR's Algorithm 1)."""
    max_new_tokens: Positive = 512
    """Per turn."""
    top_k: Positive = 3
    """Passages per search."""
    max_passage_tokens: Positive = 500
    """Per search result, wrapping tags included."""
    max_context: Positive = 4096
    """Prompt and response together; a turn starts only if it can be as long as max_new_tokens."""

    def cross_check(self) -> None:
        if self.max_new_tokens >= self.max_context:
            raise ConfigError(
                f"max_new_tokens ({self.max_new_tokens}) leaves no room for a prompt in max_context ({self.max_context})"
            )

    @classmethod
    def of(cls, scale: Scale) -> Limits:
        """The limits a recipe's scale asks for."""
        return cls(**{name: getattr(scale, name) for name in cls.__dataclass_fields__})

    def within(self, context_length: int) -> Limits:
        """These limits for a model that holds no more than `context_length` tokens."""
        return replace(self, max_context=min(self.max_context, context_length))
