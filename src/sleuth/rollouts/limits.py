"""Limits: how far an episode may go."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sleuth.errors import ConfigError
from sleuth.scale import Scale


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one episode, in model turns, passages and tokens."""

    max_steps: int = 5
    """Most model turns (N in Eval-RAR's Algorithm 1)."""
    max_new_tokens: int = 512
    """Per turn."""
    top_k: int = 3
    """Passages per search."""
    max_passage_tokens: int = 500
    """Per search result, wrapping tags included."""
    max_context: int = 4096
    """Prompt and response together; a turn starts only if it can be as long as max_new_tokens."""

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
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
