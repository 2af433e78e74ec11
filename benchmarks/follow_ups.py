"""Passages of follow-up questions over the Factbook: share of questions whose gold passage is among the first three.

Each question comes after an earlier one. Two sets are follow-ups, on the subject of the earlier question and on its
answer; two are questions on another subject, of a simple form and from the dev split. Three ways to search:
the question alone, one query of the conversation, and the searches of `Record.search_question`.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from sleuth.cli import main as sleuth
from sleuth.corpora.factbook import FactbookCorpus
from sleuth.datasets import load_questions
from sleuth.episodes.conversation import first_queries, interleaved
from sleuth.retrievers.bm25 import BM25
from sleuth.storage import write_json
from sleuth.types import Exchange, Question

TOP = 3
FIELDS = {  # field of a country: a question that names no country, and one that does
    "languages": ("And which languages are spoken there?", "Which languages are spoken in {}?"),
    "exchange-rates": (
        "What currency code and exchange rate does it have?",
        "What currency code and exchange rate does {} have?",
    ),
    "elevation": (
        "What is its highest point, in elevation?",
        "What is the highest point of {}, in elevation?",
    ),
    "religions": ("And its religions?", "What are the religions of {}?"),
}
WAYS: dict[str, Callable[[Question], list[str]]] = {
    "question alone": lambda question: [question.text],
    "one query of all": lambda question: [" ".join([*map(" ".join, question.history), question.text])],
    "three searches": first_queries,
}


class Country(NamedTuple):
    """A country and its capital."""

    code: str
    name: str
    capital: str


def countries(passages: dict[str, str]) -> Iterator[Country]:
    """Countries that have every field, from the passages' "title text" by id."""
    for key, text in passages.items():
        code, _, field = key.partition("/")
        if field == "capital" and "name:" in text and all(f"{code}/{each}" in passages for each in FIELDS):
            yield Country(code, text.partition(":")[0], text.partition("name:")[2].partition(";")[0].strip())


def sets(found: list[Country], rng: random.Random) -> dict[str, list[Question]]:
    """The four sets of questions; gold_ids holds the passage that answers."""
    asked: dict[str, list[Question]] = {
        "on the question": [],
        "on the answer": [],
        "another subject, simple": [],
    }
    for country in found:
        field = rng.choice(sorted(FIELDS))
        short, whole = FIELDS[field]
        by_name = Exchange(f"What is the capital of {country.name}?", country.capital)
        by_capital = Exchange(f"Which country has the capital {country.capital}?", country.name)
        other = rng.choice([each for each in found if each != country])
        unrelated = Exchange(f"What is the capital of {other.name}?", other.capital)
        texts = [(short, by_name), (short, by_capital), (whole.format(country.name), unrelated)]
        for name, (text, before) in zip(asked, texts, strict=True):
            gold = (f"{country.code}/{field}",)
            asked[name].append(Question(country.code, text, (), gold_ids=gold, history=(before,)))
    dev = [each for each in load_questions("factbook:dev").questions if each.answerable]
    asked["another subject, dev split"] = [
        Question(q.id, q.text, (), gold_ids=q.gold_ids, history=(asked["on the question"][i].history))
        for i, q in enumerate(rng.sample(dev, len(found)))
    ]
    return asked


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="file for the figures")
    arguments = parser.parse_args()
    rng = random.Random(0)
    passages = {p.id: f"{p.title} {p.text}" for p in FactbookCorpus().passages(print)}
    chosen = sorted(countries(passages))
    rng.shuffle(chosen)
    figures: dict[str, dict[str, float]] = {}
    with TemporaryDirectory() as folder:
        sleuth(["index", "factbook", "-o", folder, "--json"])
        index = BM25(folder)
        for name, questions in sets(chosen, rng).items():
            figures[f"{name} (n = {len(questions)})"] = {
                way: sum(
                    any(
                        hit.passage.id in q.gold_ids
                        for hit in interleaved(index.search(queries(q), TOP), TOP)
                    )
                    for q in questions
                )
                / len(questions)
                for way, queries in WAYS.items()
            }
    for name, row in figures.items():
        print(f"{name}: " + ", ".join(f"{way} {value:.2f}" for way, value in row.items()))
    if arguments.json:
        write_json(arguments.json, figures)


if __name__ == "__main__":
    main()
