"""Passages as the policy reads them: neutralised, numbered, one a line."""

from collections.abc import Iterable

from sleuth.text import neutralise
from sleuth.types import Hit, Passage


def passage_lines(passages: Iterable[Passage], *, always_titled: bool = False) -> str:
    """Numbered passages, one a line; a missing title is left out unless `always_titled`."""
    return "\n".join(
        f"Doc {i}(Title: {p.title}) {p.text}" if p.title or always_titled else f"Doc {i} {p.text}"
        for i, p in enumerate(passages, 1)
    )


def neutral_passage(passage: Passage) -> Passage:
    """The passage without tags, control tokens and line breaks; neutralising it again changes nothing.

    One line for each passage, because a line such as "Doc 9(Title: …)" inside a passage would
    otherwise look like one more passage.
    """
    title, text = (" ".join(neutralise(part).split()) for part in (passage.title, passage.text))
    return Passage(passage.id, title, text)


def neutral_hit(hit: Hit) -> Hit:
    """The hit with its passage neutralised."""
    return Hit(neutral_passage(hit.passage), hit.score)
