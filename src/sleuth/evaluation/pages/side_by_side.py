"""Side by side: the same questions answered by several systems, chosen where the systems disagree.

The choice is a fixed random one, and the whole is bounded, so that no number of questions makes a page too large.
"""

import hashlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import zip_longest

from markupsafe import Markup

from sleuth.evaluation.comparing.error_classes import CLASSES
from sleuth.evaluation.comparing.systems import System
from sleuth.evaluation.pages.episodes import episode_view
from sleuth.evaluation.pages.page import TEMPLATES
from sleuth.evaluation.records import Key
from sleuth.evaluation.result import TRAJECTORIES
from sleuth.rollouts.store import TrajectoryReader

SHOWN = 24  # Most questions on the page.
_ROOM = 6_000_000  # Most characters of all questions together; the question that passes it is the last.


def chosen_questions(systems: Sequence[System]) -> list[Key]:
    """Questions that only some systems answer rightly, each pattern in turn; of one system each outcome in turn."""
    outcomes, keys = [system.runs[0].outcomes for system in systems], systems[0].keys
    if len(systems) == 1:
        order = [name for name in CLASSES if name != "right"] + ["right"]
        return _in_turn(keys, lambda key: outcomes[0][key].name, order)
    patterns = {key: tuple(one[key].name == "right" for one in outcomes) for key in keys}
    mixed = sorted({pattern for pattern in patterns.values() if len(set(pattern)) > 1})
    return _in_turn(patterns, patterns.__getitem__, mixed)


def _in_turn(keys: Iterable[Key], group: Callable[[Key], Hashable], order: Sequence[Hashable]) -> list[Key]:
    """Keys of the groups in `order`, one of each group in turn, shuffled inside a group."""
    groups: dict[Hashable, list[Key]] = {name: [] for name in order}
    for key in sorted(keys, key=_shuffled):
        groups.setdefault(group(key), []).append(key)
    turns = zip_longest(*(groups[name] for name in order))
    return [key for turn in turns for key in turn if key is not None]


def _shuffled(key: Key) -> bytes:
    """A sort key that depends on the question alone; the first questions of a data set are not typical."""
    return hashlib.sha256(repr(key).encode("utf-8", "backslashreplace")).digest()


def question_cards(systems: Sequence[System], keys: Sequence[Key]) -> list[Markup]:
    """Cards of the first questions, at most SHOWN and as many as there is room for."""
    runs = [(system.name, system.runs[0]) for system in systems]
    readers = [TrajectoryReader(run.evaluation.folder / TRAJECTORIES) for _, run in runs]
    macro = TEMPLATES.get_template("parts.html").module.question  # type: ignore[attr-defined]
    cards: list[Markup] = []
    for key in keys[:SHOWN]:
        sides = []
        for (name, run), reader in zip(runs, readers, strict=True):
            outcome = run.outcomes[key]
            error = "" if outcome.name == "right" else CLASSES[outcome.name].label
            sides.append({"name": name, "episode": episode_view(reader[outcome.line]), "error": error})
        cards.append(macro(sides))
        if sum(map(len, cards)) > _ROOM:
            break
    return cards
