import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from sleuth import factbook
from sleuth.datasets.factbook import SHARES, SIZES, FactbookReader, factbook_questions, part_of
from sleuth.datasets.factbook_facts import countries
from sleuth.errors import DataError
from sleuth.text import contains
from sleuth.types import Question

SPLITS = ("train", "dev", "test")
QUESTIONS = [(split, q) for split in SPLITS for q in factbook_questions(split)]
PASSAGES = {p.id: p for p in factbook.passages()}


def of_kind(*kinds: str) -> list[Question]:
    return [q for _, q in QUESTIONS if q.kind in kinds]


def test_there_are_thousands_in_every_kind():
    for split in SPLITS:
        counts = Counter(q.kind for q in factbook_questions(split))
        assert set(counts) == set(SHARES)
        assert sum(counts.values()) > 0.9 * SIZES[split]


def test_the_first_hundred_are_like_the_whole():
    for split in SPLITS:
        questions = factbook_questions(split)
        whole, first = Counter(q.kind for q in questions), Counter(q.kind for q in questions[:100])
        for kind, count in whole.items():
            assert abs(first[kind] / 100 - count / len(questions)) < 0.05


def test_no_passage_is_gold_in_two_splits():
    gold = {split: {i for s, q in QUESTIONS if s == split for i in q.gold_ids} for split in SPLITS}
    assert not gold["train"] & gold["dev"]
    assert not gold["train"] & gold["test"]
    assert not gold["dev"] & gold["test"]


def test_ids_and_texts_are_unique():
    assert len({q.id for _, q in QUESTIONS}) == len(QUESTIONS)
    assert len({q.text for _, q in QUESTIONS}) == len(QUESTIONS)


def test_every_hop_stands_in_its_passage():
    for _, question in QUESTIONS:
        assert question.gold_ids == tuple(dict.fromkeys(h.passage_id for h in question.hops))
        for hop in question.hops:
            passage = PASSAGES[hop.passage_id]
            assert contains(f"{passage.title} {passage.text}", hop.answer.removeprefix("The ")), (
                question.id,
                hop,
            )
            assert hop.query
            assert hop.need.startswith("the ")


def test_bridges_and_intersections_are_answered_by_their_last_passage():
    for question in of_kind("bridge", "intersection"):
        last = PASSAGES[question.hops[-1].passage_id]
        assert contains(last.text, question.answers[0]), question.id
        assert len(question.gold_ids) == 2


def test_a_bridge_names_one_country_only():
    owners: dict[str, set[str]] = {}
    for question in of_kind("bridge"):
        description = question.hops[0].need
        owners.setdefault(description, set()).add(question.hops[0].answer)
    assert all(len(names) == 1 for names in owners.values())


def test_comparisons_are_decided_by_the_figures():
    facts = {(c.name.removeprefix("The "), a): f.number for c in countries() for a, f in c.facts.items()}
    for question in of_kind("comparison")[:300]:
        a, b = re.search(r", (?:the )?(.+) or (?:the )?(.+)\?$", question.text).groups()  # type: ignore[union-attr]
        attribute = question.hops[0].need.removeprefix("the ").split(" of ")[0]
        if question.hops[0].need.startswith("the number of airports"):
            attribute = "number of airports"
        assert question.answers[0] == (a if facts[a, attribute] > facts[b, attribute] else b), question.text  # type: ignore[operator]


def test_yes_and_no_are_balanced():
    for split in SPLITS:
        answers = Counter(q.answers[0] for q in factbook_questions(split) if q.kind == "yesno")
        assert set(answers) == {"yes", "no"}
        assert 0.4 < answers["yes"] / sum(answers.values()) < 0.6


def test_unanswerable_questions_have_no_answer_and_keep_their_first_hop():
    for question in of_kind("unanswerable"):
        assert not question.answerable
        assert question.answers == ()
        assert len(question.hops) == 1
    assert all(q.answerable and q.answers for _, q in QUESTIONS if q.kind != "unanswerable")


def test_answers_are_short_and_clean():
    for _, question in QUESTIONS:
        for answer in question.answers:
            assert 0 < len(answer.split()) <= 8
            assert not re.search(r"[<>(;]|est\.|\bNA\b", answer), answer


def test_questions_are_well_formed():
    for _, question in QUESTIONS:
        assert question.text.endswith("?")
        assert "  " not in question.text
        assert not re.search(r"\b[Tt]he [Tt]he\b|, The\b|<|&\w+;", question.text), question.text
        assert not re.search(
            r"(?<!the )(?<!The )(Bahamas|Gambia|Netherlands|United Kingdom)", question.text
        ), question.text


@pytest.mark.slow
def test_another_process_generates_the_same():
    script = "from sleuth.datasets.factbook import *; print(hash(tuple((q.id, q.text) for q in factbook_questions('dev')).__repr__().__len__()), factbook_questions('dev')[77].id)"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_parts_of_countries():
    shares = Counter(part_of(c.code) for c in countries())
    assert shares["train"] > shares["dev"] > 20
    assert shares["test"] > 20


def test_unknown_split():
    with pytest.raises(DataError, match="train, dev, test"):
        list(FactbookReader().records(Path("validation")))
