"""Factbook questions: what holds for every question that is generated."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest

from sleuth import factbook
from sleuth.datasets.factbook import SHARES, SIZES, FactbookReader, Split, factbook_questions, part_of
from sleuth.datasets.factbook_questions.attributes import ASKED, ATTRIBUTES, SPARSE
from sleuth.datasets.factbook_questions.clues import IDENTIFYING, chained_clues, fact_clues, relation_clues
from sleuth.datasets.factbook_questions.contrasts import CONTRASTS
from sleuth.datasets.factbook_questions.countries import countries
from sleuth.errors import DataError
from sleuth.retrievers.bm25 import open_index
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.text import contains, normalise
from sleuth.types import Question

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
BY_SPLIT = {split: factbook_questions(split) for split in SPLITS}
QUESTIONS = [question for questions in BY_SPLIT.values() for question in questions]
PASSAGES = {p.id: p for p in factbook.passages()}


def of_kind(*kinds: str) -> list[Question]:
    return [q for q in QUESTIONS if q.kind in kinds]


def evidence(identity: str) -> str:
    passage = PASSAGES[identity]
    return f"{passage.title} {passage.text}"


@pytest.mark.parametrize("split", SPLITS)
def test_every_kind_has_its_share(split: Split):
    counts = Counter(q.kind for q in BY_SPLIT[split])
    assert counts == {kind: round(share * SIZES[split]) for kind, share in SHARES.items()}


@pytest.mark.parametrize("split", SPLITS)
def test_the_first_hundred_are_like_the_whole(split: Split):
    questions = BY_SPLIT[split]
    first = Counter(q.kind for q in questions[:100])
    assert all(abs(first[kind] - 100 * share) <= 2 for kind, share in SHARES.items())
    asked = Counter(q.hops[-1].need.split(" of ")[0] for q in questions[:100])
    assert asked.most_common(1)[0][1] < 20


def test_no_passage_is_gold_in_two_splits():
    gold = {split: {i for q in questions for i in q.gold_ids} for split, questions in BY_SPLIT.items()}
    assert not gold["train"] & gold["dev"]
    assert not gold["train"] & gold["test"]
    assert not gold["dev"] & gold["test"]


def test_gold_passages_belong_to_countries_of_the_split():
    for split, questions in BY_SPLIT.items():
        assert {part_of(i[:2]) for q in questions for i in q.gold_ids} == {split}


def test_parts_of_countries():
    shares = Counter(part_of(country.code) for country in countries())
    assert shares["train"] > 100
    assert min(shares["dev"], shares["test"]) > 25


def test_ids_and_texts_are_unique():
    assert len({q.id for q in QUESTIONS}) == len(QUESTIONS)
    assert len({q.text for q in QUESTIONS}) == len(QUESTIONS)
    assert all(re.fullmatch(r"factbook-[a-z0-9-]+", q.id) for q in QUESTIONS)


def test_every_hop_stands_in_its_passage():
    for question in QUESTIONS:
        assert question.gold_ids == tuple(dict.fromkeys(hop.passage_id for hop in question.hops))
        for hop in question.hops:
            assert contains(evidence(hop.passage_id), hop.answer), (question.id, hop)
            assert hop.query.strip() == hop.query != ""
            assert re.match(r"the (?!the )", hop.need), hop


def test_every_answer_stands_in_the_gold_passages():
    for question in of_kind("bridge", "intersection", "comparison"):
        assert any(contains(evidence(i), question.answers[0]) for i in question.gold_ids), question


def test_a_bridge_is_answered_by_its_last_passage_alone():
    for question in of_kind("bridge"):
        *before, last = question.hops
        assert len(question.gold_ids) == len(question.hops) >= 2
        assert contains(evidence(last.passage_id), question.answers[0])
        assert not contains(question.text, question.answers[0]), question.text
        assert last.answer == question.answers[0]
        # The bridge: what a hop finds is what the next search is about.
        for hop, following in zip(before, question.hops[1:], strict=True):
            assert following.passage_id[:2] != hop.passage_id[:2] or hop.answer in following.query


def test_what_an_intersection_asks_for_stands_in_both_passages():
    for question in of_kind("intersection"):
        first, second = question.hops
        assert contains(evidence(first.passage_id), question.answers[0])
        assert any(contains(evidence(second.passage_id), answer) for answer in question.answers)
        assert len(question.gold_ids) == 2


def test_a_clue_fits_one_country_only():
    owners: dict[str, set[str]] = {}
    for country in countries():
        for clue in fact_clues(country):
            owners.setdefault(clue.phrase.lower(), set()).add(clue.country.code)
    assert len(owners) > 1200
    assert not {phrase: codes for phrase, codes in owners.items() if len(codes) > 1}


def test_the_value_of_a_clue_stands_in_no_other_entry_at_the_same_place():
    wordings = {noun: phrase.split("{}") for noun, phrase in IDENTIFYING.items()}
    parts: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for entry in factbook.entries():
        for name, text in entry.parts.items():
            parts.setdefault((entry.field, name), []).append((entry.code, f" {normalise(text)} "))
    for country in countries():
        for clue in fact_clues(country):
            field = re.sub(r" \(\d+\)$", "", PASSAGES[clue.hops[0].passage_id].title.split(": ", 1)[1])
            before, after = next(p for noun, p in wordings.items() if ATTRIBUTES[noun].slug == clue.slug)
            value = clue.phrase.removeprefix(before).removesuffix(after)
            places = [n for n, text in country.fields[field].parts.items() if contains(text, value)]
            assert places, clue.phrase
            owners = {code for code, text in parts[field, places[0]] if f" {normalise(value)} " in text}
            assert owners == {country.code}, (clue.phrase, owners)


def test_a_relation_leads_to_the_country_it_names():
    members = [country for country in countries() if part_of(country.code) == "train"]
    clues = [*relation_clues(members), *chained_clues(members[:20])]
    assert len(clues) > 100
    for clue in clues:
        assert clue.country in members
        names = [normalise(name) for name in (clue.country.name, *clue.country.aliases)]
        assert normalise(clue.hops[-1].answer) in names


def figure(text: str) -> float:
    """The first figure of a hop's answer, as a person would read it."""
    if re.fullmatch(r"\d+ [A-Z]\w+ \d{4}", text):
        return datetime.strptime(text, "%d %B %Y").toordinal()
    match = re.match(r"\$?([\d,]*\.?\d+)(?: (million|billion|trillion)\b)?", text)
    assert match, text
    scale = {None: 1.0, "million": 1e6, "billion": 1e9, "trillion": 1e12}[match[2]]
    return float(match[1].replace(",", "")) * scale


LESS = {contrast.less for contrast in CONTRASTS}
MORE = {contrast.more for contrast in CONTRASTS}


def test_comparisons_are_decided_by_the_figures():
    for question in of_kind("comparison"):
        sides = [hop for hop in question.hops if not hop.need.startswith(("the country ", "the main "))]
        a, b = (figure(hop.answer) for hop in sides)
        adjective = next(w for w in re.findall(r"\w+", question.text) if w in MORE | {"first", *LESS})
        wanted = sides[0] if (a > b) == (adjective in MORE) else sides[1]
        assert normalise(question.answers[0]) in normalise(PASSAGES[wanted.passage_id].title), question
        assert abs(a - b) > 0


def test_yes_and_no_are_decided_by_the_figures():
    seen = Counter[str]()
    for question in of_kind("yesno"):
        words = [w for w in re.findall(r"\w+", question.text) if w in MORE | LESS]
        if " than " not in question.text:
            continue
        sides = [hop for hop in question.hops if not hop.need.startswith(("the country ", "the main "))]
        a, b = (figure(hop.answer) for hop in sides)
        assert question.answers == ("yes" if (a > b) == (words[0] in MORE) else "no",), question
        seen[question.answers[0]] += 1
    assert min(seen["yes"], seen["no"]) > 300


@pytest.mark.parametrize("split", SPLITS)
def test_yes_and_no_are_balanced(split: Split):
    answers = Counter(q.answers[0] for q in BY_SPLIT[split] if q.kind == "yesno")
    assert set(answers) == {"yes", "no"}
    assert abs(answers["yes"] - answers["no"]) <= 2
    first = Counter(q.text.split(" ")[0] for q in BY_SPLIT[split] if q.kind == "yesno")
    assert len(first) >= 4


def test_same_or_not():
    for question in of_kind("yesno"):
        if "-same-" in question.id:
            shared = [h.answer for h in question.hops if not h.need.startswith("the country w")]
            values = {normalise(value) for value in shared[-2:]}
            if question.answers == ("no",):
                assert len(values) == 2 or "independence" in question.text, question


def test_unanswerable_questions_lack_their_evidence():
    fields = {(entry.code, entry.field) for entry in factbook.entries()}
    for question in of_kind("unanswerable"):
        assert not question.answerable
        assert question.answers == ()
        assert question.hops
    by_slug = {attribute.slug: attribute for attribute in SPARSE}
    bridged = [
        q for q in of_kind("unanswerable") if not q.text.startswith(("Which country", "In which country"))
    ]
    assert len(bridged) > 300
    for question in bridged:
        code = question.id.removeprefix("factbook-unanswerable-")[:2]
        attribute = next(by_slug[slug] for slug in by_slug if question.id.endswith(slug))
        assert (code, attribute.field) not in fields, question


def test_the_words_do_not_give_away_what_is_unanswerable():
    """Every attribute asked for in vain is also asked for with success, and at least as often."""
    for attribute in SPARSE:
        stems = [ask.split("{}")[0] for ask in attribute.ask]
        mentions = Counter(q.answerable for q in BY_SPLIT["train"] if q.text.startswith(tuple(stems)))
        assert mentions[True] >= mentions[False] > 0, attribute.noun
    assert all(q.answerable and q.answers for q in QUESTIONS if q.kind != "unanswerable")


def test_answers_are_short_and_clean():
    for question in QUESTIONS:
        for answer in question.answers:
            assert answer == answer.strip()
            assert 0 < len(answer.split()) <= (10 if answer != question.answers[0] else 8)
            assert not re.search(r"[<>;]|est\.|\bNA\b|&|\bnote\b", answer.replace("& ", "")), answer
            assert normalise(answer)
        assert len(set(question.answers)) == len(question.answers)
    lengths = sorted(len(q.answers[0].split()) for q in QUESTIONS if q.answers)
    assert lengths[int(0.95 * len(lengths))] <= 4


def test_questions_are_well_formed():
    for question in QUESTIONS:
        assert re.fullmatch(r"[A-Z].*[^ ]\?", question.text)
        assert "  " not in question.text
        assert not re.search(r"\b[Tt]he [Tt]he\b|, The\b|<|&\w+;|\{|\bnone\b|\bNA\b", question.text), (
            question.text
        )


def test_articles():
    names = "Bahamas|Gambia|Netherlands|United (?:Kingdom|States|Arab Emirates)|Philippines|Maldives|Comoros"
    names += "|Solomon Islands|Marshall Islands|Central African Republic|Dominican Republic"
    for question in QUESTIONS:
        for text in (question.text, *(hop.need for hop in question.hops)):
            plain = re.sub(r"(Khmer|Netherlands (?:East Indies|Guiana)|New Philippines).*?\b", "", text)
            plain = re.sub(r'"[^"]*"', "", plain)
            assert not re.search(rf"(?<!the )\b(?:{names})\b", plain), text
    assert {c.the for c in countries()} >= {
        "the Bahamas",
        "the United States",
        "Peru",
        "the Gambia",
        "Czechia",
    }


def test_every_attribute_and_wording_is_used():
    used = {hop.need.split(" of ")[0].split(" in ")[0] for q in QUESTIONS for hop in q.hops}
    for attribute in ATTRIBUTES.values():
        if attribute.ask and not attribute.need.startswith("the country"):
            assert attribute.need.split(" of ")[0].split(" in ")[0] in used, attribute.noun
    starts = tuple(q.text for q in of_kind("bridge"))
    for attribute in ASKED:
        for ask in attribute.ask:
            assert any(text.startswith(ask.split("{}")[0]) for text in starts), ask


def test_two_runs_are_equal_and_the_global_generator_is_left_alone():
    state = random.getstate()
    from sleuth.datasets import factbook as module

    module._questions.cache_clear()
    assert factbook_questions("dev") == BY_SPLIT["dev"]
    assert random.getstate() == state


def test_callers_cannot_change_the_questions_of_others():
    factbook_questions("dev").clear()
    assert factbook_questions("dev") == BY_SPLIT["dev"]


@pytest.mark.slow
def test_other_processes_generate_the_same():
    script = (
        "import hashlib\n"
        "from sleuth.datasets.factbook import factbook_questions\n"
        "text = repr([factbook_questions(s) for s in ('train', 'dev', 'test')])\n"
        "print(hashlib.sha256(text.encode()).hexdigest())"
    )
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
    assert len(outputs.pop()) == 65


@pytest.mark.slow
def test_searches_find_their_passages_and_the_question_alone_does_not(tmp_path: Path):
    build_index(factbook.passages(), tmp_path / "index")
    index = open_index(tmp_path / "index")
    hops = [hop for questions in BY_SPLIT.values() for q in questions[:400] for hop in q.hops]
    found = index.search([hop.query for hop in hops], 3)
    hits = sum(
        hop.passage_id in {hit.passage.id for hit in top} for hop, top in zip(hops, found, strict=True)
    )
    assert hits / len(hops) >= 0.97
    questions = [q for q in BY_SPLIT["dev"] if q.answerable]
    found = index.search([q.text for q in questions], 3)
    at_once = sum(
        set(q.gold_ids) <= {hit.passage.id for hit in top} for q, top in zip(questions, found, strict=True)
    )
    assert at_once / len(questions) < 0.35


def test_the_examples_in_the_documentation_exist():
    page = (Path(__file__).parents[2] / "docs" / "factbook.md").read_text(encoding="utf-8")
    shown = re.findall(r"^- (.+\?) → (.+)$", page, re.MULTILINE)
    assert len(shown) == 2 * len(SHARES)
    answers = {q.text: q.answers[0] if q.answers else "(no answer)" for q in QUESTIONS}
    assert [(text, answers.get(text)) for text, _ in shown] == shown


def test_the_reader_gives_the_same_questions():
    loaded = FactbookReader().load(Path("test"), strict=True, limit=50)
    assert loaded.questions == BY_SPLIT["test"][:50]
    assert loaded.bad == []
    assert {q.dataset for q in loaded.questions} == {FactbookReader.name}


@pytest.mark.parametrize("split", ["validation", "", "train.json", "TRAIN"])
def test_unknown_split(split: str):
    with pytest.raises(DataError, match="train, dev, test"):
        list(FactbookReader().records(Path(split)))
