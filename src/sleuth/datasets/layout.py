"""Layout: the names under which a record keeps the parts of a question, and the function that reads them.

Sleuth's own layout is `id, question, answers, passages?, gold_ids?, answerable?, hops?, kind?, dataset?,
rejected?, history?`. Published benchmarks differ from it mostly in names. Where a record has paragraphs that
are marked as supporting, but no gold ids or hops, these are derived.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from sleuth.datasets import chains
from sleuth.fields import (
    FieldError,
    as_list,
    as_record,
    as_text,
    decode_in,
    first_in,
    flag_in,
    id_in,
    not_blank,
    optional_text,
    shown,
    text_in,
    texts,
)  # fmt: skip
from sleuth.types import Exchange, Hop, Passage, Question

_PLAIN_ANSWERS = ("answers", "answer", "Answer")
"""Names under which a text is an answer itself; elsewhere it must be a JSON list."""
_ALIASES = ("HumanAnswers", "Aliases", "aliases", "NormalizedAliases", "normalized_aliases")
"""Lists of further answers in TriviaQA's answer objects."""
_SLUG_LENGTH = 40


class Paragraph(NamedTuple):
    """A passage of a record."""

    passage: Passage
    is_gold: bool
    number: int  # Number by which a decomposition refers to it.


@dataclass(frozen=True)
class Layout:
    """Field names; the first that a record has is read."""

    id: Sequence[str] = ("id",)
    question: Sequence[str] = ("question",)
    answers: Sequence[str] = ("golden_answers", "answer")
    """A list, a JSON list as text, one text, or TriviaQA's object of value and aliases."""
    aliases: Sequence[str] = ()  # A list of further answers.
    kind: Sequence[str] = ()
    paragraphs: Sequence[str] = ()
    """Objects with `text` or `sentences`, marked by `is_supporting` or `supporting_sentences`."""
    context: str = ""  # Table of titles and sentences; `supporting_facts` marks the gold titles.
    steps: str = "decomposition"  # Sub-questions in MuSiQue's form.


OWN = Layout(answers=("answers",), kind=("kind", "type"), paragraphs=("passages", "paragraphs"))


def is_own(record: Mapping[str, Any]) -> bool:
    """Whether a record names its answers as in Sleuth's own layout, which no supported benchmark does."""
    return isinstance(record.get("answers"), list | str) and "golden_answers" not in record


def read_question(record: Mapping[str, Any], layout: Layout, dataset: str) -> Question:
    """The question of a record, with the id "" if it has none. Raises FieldError."""
    own_id, text = id_in(record, *layout.id), text_in(record, *layout.question)
    answerable = flag_in(record, "answerable", default=True)
    paragraphs = _paragraphs(record, layout)
    passages = {paragraph.passage.id: paragraph.passage for paragraph in paragraphs}
    question = Question(
        id=own_id,
        text=text,
        answers=_answers(record, layout) if answerable else (),
        passages=tuple(passages.values()),
        gold_ids=_gold_ids(record, layout, paragraphs) if answerable else (),
        answerable=answerable,
        kind=optional_text(record, *layout.kind),
        dataset=dataset,
        rejected=texts(record.get("rejected") or [], "rejected"),
        history=_history(record),
    )
    return replace(question, hops=_hops(record, layout, question, paragraphs)) if answerable else question


def _history(record: Mapping[str, Any]) -> tuple[Exchange, ...]:
    """Earlier questions with their answers, which may be empty."""
    rows = table(record.get("history") or [], "history", (("question",), ("answer",)))
    return tuple(
        Exchange(as_text(asked, "history"), optional_text({"history": answer}, "history"))
        for asked, answer in rows
    )


def short_hash(*parts: str) -> str:
    """40 bits of SHA-256 in hex; parts are separated, so that ("a", "bc") differs from ("ab", "c")."""
    whole = "\x00".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(whole).hexdigest()[:10]


def passage_id(title: str, text: str) -> str:
    """Title words and a hash of title and text: equal for equal paragraphs of any record."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower())[:_SLUG_LENGTH].strip("-") or "passage"
    return f"{slug}-{short_hash(title, text)}"


def table(value: object, field: str, columns: Sequence[Sequence[str]]) -> list[tuple[Any, ...]]:
    """Rows of a nested table, one cell for each of `columns`, of which each lists the names it goes by.

    [[a, b], …] (published files), {"a": […], "b": […]} (Hugging Face columns), [{"a": …, "b": …}, …],
    or one of these as a JSON string. Raises FieldError.
    """
    if isinstance(value, str):
        value = decode_in(value, field)
    if isinstance(value, Mapping):
        parts = [as_list(first_in(value, names), f"{field}.{names[0]}") for names in columns]
        if len({len(part) for part in parts}) > 1:
            raise FieldError(field, f"columns of different length: {[len(part) for part in parts]}")
        return list(zip(*parts, strict=True))
    rows = []
    for i, row in enumerate(as_list(value, field)):
        cells = (
            [first_in(row, names) for names in columns]
            if isinstance(row, Mapping)
            else as_list(row, f"{field}[{i}]")
        )
        if len(cells) < len(columns):
            raise FieldError(f"{field}[{i}]", f"must have {len(columns)} parts, not {len(cells)}")
        rows.append(tuple(cells[: len(columns)]))
    return rows


@contextmanager
def _inside(field: str) -> Iterator[None]:
    """Names a FieldError of a part by its place in the record: "text" → "passages[3].text"."""
    try:
        yield
    except FieldError as fault:
        raise FieldError(f"{field}.{fault.field}", fault.reason) from fault


def _answers(record: Mapping[str, Any], layout: Layout) -> tuple[str, ...]:
    name = next((name for name in layout.answers if record.get(name) is not None), layout.answers[-1])
    value = record.get(name)
    if isinstance(value, Mapping) and name != "answers":
        with _inside(name):
            lists = (not_blank(value[alias], alias) for alias in _ALIASES if value.get(alias) is not None)
            found = (text_in(value, "Value", "value"), *(answer for each in lists for answer in each))
    elif isinstance(value, str) and name in _PLAIN_ANSWERS and not _is_list(value):
        found = (as_text(value, name),)
    else:
        found = texts(value, name)
    if not found:
        raise FieldError(name, "no answer")
    aliases = first_in(record, layout.aliases)
    others = () if aliases is None else not_blank(aliases, layout.aliases[0])
    return tuple(dict.fromkeys((*found, *others)))


def _is_list(text: str) -> bool:
    """Whether a text is a JSON list; an answer may begin with a bracket too: "[sic] foo"."""
    try:
        return text.lstrip().startswith("[") and isinstance(decode_in(text, ""), list)
    except FieldError:
        return False


def _paragraphs(record: Mapping[str, Any], layout: Layout) -> list[Paragraph]:
    if layout.context:
        return _titled(record.get(layout.context), layout.context)
    name = next((name for name in layout.paragraphs if record.get(name) is not None), "")
    found: dict[str, Passage] = {}
    paragraphs = []
    for i, value in enumerate(as_list(record[name], name) if name else []):
        entry = as_record(value, f"{name}[{i}]")
        with _inside(f"{name}[{i}]"):
            paragraph = _paragraph(entry, i)
            if found.setdefault(paragraph.passage.id, paragraph.passage) != paragraph.passage:
                raise FieldError("id", f"{paragraph.passage.id!r} is another paragraph's id")
        paragraphs.append(paragraph)
    return paragraphs


def _paragraph(entry: Mapping[str, Any], place: int) -> Paragraph:
    title, sentences = optional_text(entry, "title"), entry.get("sentences")
    text = text_in(entry, "text", "paragraph_text") if sentences is None else joined(sentences, "sentences")
    if not text:
        raise FieldError("sentences", "empty")
    is_gold = flag_in(entry, "is_supporting", default=bool(entry.get("supporting_sentences")))
    index = entry.get("idx")
    passage = Passage(id_in(entry, "id") or passage_id(title, text), title, text)
    return Paragraph(passage, is_gold, index if isinstance(index, int) else place)


def _titled(value: object, field: str) -> list[Paragraph]:
    found: dict[str, Paragraph] = {}
    rows = [] if value is None else table(value, field, [("title",), ("sentences", "content")])
    for i, (title, sentences) in enumerate(rows):
        name = as_text(title, f"{field}[{i}].title")
        if text := joined(sentences, f"{field}[{i}].sentences"):
            passage = Passage(passage_id(name, text), name, text)
            found.setdefault(passage.id, Paragraph(passage, False, i))
    return list(found.values())


def joined(sentences: object, field: str) -> str:
    """A paragraph's sentences as one text; "" if all are blank. Raises FieldError."""
    parts = as_list(sentences, field)
    for i, part in enumerate(parts):
        if not isinstance(part, str):
            raise FieldError(f"{field}[{i}]", f"must be text, not {shown(part)}")
    whole = " ".join(stripped for part in parts if (stripped := part.strip()))
    return as_text(whole, field) if whole else ""


def _gold_ids(record: Mapping[str, Any], layout: Layout, paragraphs: Sequence[Paragraph]) -> tuple[str, ...]:
    if layout.context:
        return _supporting(record.get("supporting_facts"), paragraphs)
    if record.get("gold_ids") is None:
        return tuple(dict.fromkeys(p.passage.id for p in paragraphs if p.is_gold))
    ids = (str(i) if type(i) is int else i for i in as_list(record["gold_ids"], "gold_ids"))
    gold_ids = texts(list(ids), "gold_ids")
    given = {paragraph.passage.id for paragraph in paragraphs}
    # Without given passages the ids are those of a corpus.
    if given and (unknown := [gold for gold in gold_ids if gold not in given]):
        raise FieldError("gold_ids", f"{unknown[0]!r} names no passage of the record")
    return gold_ids


def _supporting(facts: object, paragraphs: Sequence[Paragraph]) -> tuple[str, ...]:
    """Ids of the paragraphs that the facts name; () if one is missing, since half of the gold would count as all."""
    rows = [] if facts is None else table(facts, "supporting_facts", [("title",), ("sent_id",)])
    titles = [as_text(title, f"supporting_facts[{i}]") for i, (title, _) in enumerate(rows)]
    # Reversed, so that the first paragraph of a title wins.
    by_title = {p.passage.title: p.passage.id for p in reversed(paragraphs)}
    ids = [by_title.get(title, "") for title in titles]
    return tuple(dict.fromkeys(ids)) if all(ids) else ()


def _hops(
    record: Mapping[str, Any], layout: Layout, question: Question, paragraphs: Sequence[Paragraph]
) -> tuple[Hop, ...]:
    if record.get("hops") is not None:
        given = {passage.id for passage in question.passages}
        return tuple(_hop(hop, f"hops[{i}]", given) for i, hop in enumerate(as_list(record["hops"], "hops")))
    if record.get(layout.steps) is not None:
        return _step_hops(record[layout.steps], layout.steps, {p.number: p.passage.id for p in paragraphs})
    golds = [passage for passage in question.passages if passage.id in question.gold_ids]
    if record.get("evidences") is not None:
        columns = [("fact", "subject"), ("relation",), ("entity", "object")]
        rows = table(record["evidences"], "evidences", columns)
        triples = [[as_text(cell, f"evidences[{i}]") for cell in row] for i, row in enumerate(rows)]
        if hops := chains.evidence_hops(triples, golds):
            return hops
    return chains.derived_hops(question)


def _hop(value: object, field: str, given: Collection[str]) -> Hop:
    entry = as_record(value, field)
    with _inside(field):
        passage = id_in(entry, "passage_id") or text_in(entry, "passage_id")
        if given and passage not in given:
            raise FieldError("passage_id", f"{passage!r} names no passage of the record")
        return Hop(
            text_in(entry, "query"), passage, optional_text(entry, "answer"), optional_text(entry, "need")
        )


def _step_hops(value: object, field: str, ids: Mapping[int, str]) -> tuple[Hop, ...]:
    """Hops of MuSiQue's decomposition; () if the paragraph of a step is missing."""
    found = []
    for i, step in enumerate(as_list(value, field)):
        entry = as_record(step, f"{field}[{i}]")
        support = entry.get("paragraph_support_idx")
        if type(support) is not int or support not in ids:
            return ()
        found.append((text_in(entry, "question"), ids[support], text_in(entry, "answer")))
    return chains.decomposition_hops(found)
