"""Events of an episode while it is played, for interfaces that show it live."""

from collections.abc import Callable
from dataclasses import dataclass

from sleuth.types import Action, Field, Hit


@dataclass(frozen=True, slots=True)
class Searching:
    """A search has begun."""

    query: str


@dataclass(frozen=True, slots=True)
class Found:
    """A search has ended."""

    query: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True)
class Writing:
    """The model has written a piece of its turn."""

    text: str


@dataclass(frozen=True, slots=True)
class Written:
    """The model has finished a turn."""

    text: str
    fields: tuple[Field, ...]
    """Its tagged sections, such as a note on the evidence."""


Event = Searching | Found | Writing | Written | Action
Watch = Callable[[Event], None]
"""Receives events in the event loop of the episode."""


def ignore(event: Event) -> None:
    """Watch nothing."""
