"""Our own scoring cases, drawn from a seed: pieces of text that scorers are known to disagree on, and mutations.

Only Random.random is used, whose numbers Python promises never to change.
"""

import hashlib
import json
import random
from dataclasses import asdict, dataclass, field
from typing import Any

DATASETS = ("2wiki", "hotpotqa", "musique", "nq", "squad2", "triviaqa")
COUNT = 360

_WORDS = (
    "the a an The A.I. AI U.S. US AT&T ATT Spider-Man Spider Man 3,000 3000 3.5 $5 50% don't don’t dont rock_n_roll "
    "rock'n'roll `quoted` ´acute´ Paris paris PARIS London river of and King's Beyoncé Beyonce\u0301 Zürich Zu\u0308rich "
    "STRASSE straße İstanbul i\u0307stanbul ﬁne 北京 北京市 naïve à â – — … £20 ½ x² Łódź Ångström \u212bngstro\u0308m "
    "1990 19 9 yes no noanswer Yes. No! C++ C# #1 (1999) \u201cwar\u201d 'tis o'clock e.g. Ph.D. 1st Thea Ana anthe"
)
WORDS = tuple(_WORDS.split())
CLOSED = ("yes", "no", "noanswer", "Yes", "NO.", "No answer", "Noanswer!", "the yes", "yes no")
BLANK = ("", " ", "the", "a an The", "...", "'", "\u00a0", "\u200b", "!?", "The  the")


@dataclass
class Case:
    """One question as every script sees it."""

    prediction: str
    golds: list[str]
    facts: list[tuple[str, int]] = field(default_factory=list)
    gold_facts: list[tuple[str, int]] = field(default_factory=list)
    triples: list[tuple[str, str, str]] = field(default_factory=list)
    gold_triples: list[list[tuple[str, str, str]]] = field(default_factory=list)
    """For each fact its statements by every alias."""
    paragraphs: list[int] = field(default_factory=list)
    gold_paragraphs: list[int] = field(default_factory=list)
    answerable: bool = True
    says_answerable: bool = True
    no_answer_probability: float = 0.0


class Draw:
    """Choices from Random.random alone."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def below(self, n: int) -> int:
        return int(self._random.random() * n)

    def of(self, items: Any) -> Any:
        return items[self.below(len(items))]

    def chance(self, p: float) -> bool:
        return self._random.random() < p

    def some(self, items: Any, p: float) -> list[Any]:
        return [item for item in items if self.chance(p)]


def cases(dataset: str) -> list[Case]:
    """The same COUNT cases for a data set, always."""
    return [_case(Draw(f"{dataset}-{number}"), dataset) for number in range(COUNT)]


def fingerprint(dataset: str) -> str:
    """Hash of the inputs, so that a changed generator is not mistaken for a changed score."""
    written = json.dumps([asdict(case) for case in cases(dataset)], sort_keys=True)
    return hashlib.sha256(written.encode()).hexdigest()[:16]


def _case(draw: Draw, dataset: str) -> Case:
    most = 1 if dataset == "hotpotqa" else 4
    golds = [_answer(draw) for _ in range(1 + draw.below(most))]
    if dataset == "squad2" and draw.chance(0.35):
        golds = [] if draw.chance(0.8) else [draw.of(("the", "...", " "))]
    prediction = _prediction(draw, golds)
    case = Case(prediction, golds)
    case.facts, case.gold_facts = _facts(draw)
    case.triples, case.gold_triples = _triples(draw)
    case.paragraphs, case.gold_paragraphs = draw.some(range(6), 0.4), draw.some(range(6), 0.4)
    case.says_answerable = draw.chance(0.7)
    case.no_answer_probability = draw.below(1000) / 1000 if draw.chance(0.8) else 0.5
    return case


def _answer(draw: Draw) -> str:
    if draw.chance(0.2):
        return str(draw.of(CLOSED))
    if draw.chance(0.05):
        return str(draw.of(BLANK))
    return " ".join(draw.of(WORDS) for _ in range(1 + draw.below(4)))


def _prediction(draw: Draw, golds: list[str]) -> str:
    kind = draw.below(10)
    if kind == 0:
        return str(draw.of(BLANK))
    if kind == 1:
        return str(draw.of(CLOSED))
    if kind == 2 or not golds:
        return _answer(draw)
    return _mutated(draw, draw.of(golds))


def _mutated(draw: Draw, text: str) -> str:
    tokens = text.split(" ")
    kind = draw.below(9)
    if kind == 0:
        return text.upper()
    if kind == 1:
        return f"the {text}."
    if kind == 2:
        return f"{text}  {draw.of(WORDS)}"
    if kind == 3:
        return " ".join(tokens[1:])
    if kind == 4:
        return " ".join(reversed(tokens))
    if kind == 5:
        return f"{text} {text}"
    if kind == 6:
        return text.replace("-", " ").replace("’", "'").replace("_", " ")
    if kind == 7:
        return f"\t{draw.of(WORDS)} {text},\n"
    return text


def _facts(draw: Draw) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    pool = [(title, place) for title in ("Ada", "ada", "Émile", "ÉMILE", "U.S.") for place in range(2)]
    named = draw.some(pool, 0.3) if draw.chance(0.85) else []
    gold = draw.some(pool, 0.3) if draw.chance(0.95) else []
    if draw.chance(0.3):
        named = list(gold)
    return named + named[:1], gold


def _triples(draw: Draw) -> tuple[list[tuple[str, str, str]], list[list[tuple[str, str, str]]]]:
    subjects, objects = ("Ada", "The Ada", "A.D.A"), ("Paris", "city of Paris", "北京")
    gold = [
        [
            (s, relation, o)
            for s in draw.some(subjects, 0.5) or ["Ada"]
            for o in draw.some(objects, 0.4) or ["x"]
        ]
        for relation in draw.some(("father", "place of birth", "country"), 0.6)
    ]
    stated = [draw.of(fact) for fact in gold if draw.chance(0.75)]
    if draw.chance(0.2):
        stated += [fact[-1] for fact in gold]
    if draw.chance(0.3):
        stated.append(("ADA!", "father", "paris"))
    return [(s.lower() if draw.chance(0.3) else s, r, o) for s, r, o in stated], gold
