"""Public benchmarks, one declared layout each. Every reader takes published files, hub columns and FlashRAG's lines."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sleuth.datasets.base import BadRecord
from sleuth.datasets.layout import OWN, Layout
from sleuth.datasets.records import RecordReader
from sleuth.datasets.rows import file_rows
from sleuth.errors import DataError
from sleuth.fields import FieldError, as_record, not_blank, optional_text, text_in
from sleuth.types import Question

ALIASES_FILE = "id_aliases.json"


class OwnReader(RecordReader):
    """Questions of a user, in Sleuth's own layout. The data set is the one a record names, else ""."""

    name = "jsonl"
    layout = OWN


class NQReader(RecordReader):
    """NQ-open (Kwiatkowski et al. 2019, Lee et al. 2019, CC BY-SA 3.0): questions typed into a search engine."""

    name = "nq"


class BamboogleReader(RecordReader):
    """Bamboogle (Press et al. 2023, MIT): 125 two-hop questions written by hand, a test set."""

    name = "bamboogle"
    layout = Layout(question=("Question", "question"), answers=("Answer", "golden_answers", "answer"))


class TriviaQAReader(RecordReader):
    """TriviaQA (Joshi et al. 2017) without its documents. The value and all aliases are accepted answers."""

    name = "triviaqa"
    layout = Layout(
        id=("QuestionId", "question_id", "id"),
        question=("Question", "question"),
        answers=("golden_answers", "Answer", "answer"),
    )


class PopQAReader(RecordReader):
    """PopQA (Mallen et al. 2023, MIT): one fact of one entity. The kind is the property, such as "occupation"."""

    name = "popqa"
    layout = Layout(answers=("golden_answers", "possible_answers"), kind=("prop",))


class HotpotQAReader(RecordReader):
    """HotpotQA (Yang et al. 2018, CC BY-SA 4.0): two-paragraph questions, "bridge" and "comparison".

    In the full-wiki files a gold paragraph may be missing. Such a question has no gold ids.
    """

    name = "hotpotqa"
    layout = Layout(id=("_id", "id"), context="context", kind=("type",))


@dataclass(frozen=True)
class TwoWikiReader(RecordReader):
    """2WikiMultiHopQA (Ho et al. 2020, Apache-2.0): HotpotQA's layout with evidence triples.

    The official `id_aliases.json` (JSON lines of Q_id, aliases, demonyms) may be in the file's folder.
    Then aliases and demonyms of `answer_id` are accepted answers, as in the official evaluation v1.1.
    """

    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """Wikidata id → other names; if empty, read from `id_aliases.json`."""

    name = "2wiki"
    layout = HotpotQAReader.layout

    def records(self, path: Path) -> Iterator[Question | BadRecord]:
        """Every record of the file. Raises DataError if the file of aliases is damaged."""
        names = path.with_name(ALIASES_FILE) if path.name else path
        if self.aliases or not names.is_file():
            return super().records(path)
        return replace(self, aliases=read_aliases(names)).records(path)

    def published(self, record: Mapping[str, Any]) -> Question:
        question = super().published(record)
        known = self.aliases.get(optional_text(record, "answer_id"), ())
        return replace(question, answers=tuple(dict.fromkeys((*question.answers, *known))))


class MuSiQueReader(RecordReader):
    """MuSiQue (Trivedi et al. 2022, CC BY 4.0): 2 to 4 hops with their decomposition.

    In MuSiQue-Full a question and its unanswerable twin share an id; the twin's gets "-unanswerable".
    """

    name = "musique"
    layout = Layout(aliases=("answer_aliases",), paragraphs=("paragraphs",), steps="question_decomposition")

    def published(self, record: Mapping[str, Any]) -> Question:
        """One record; the kind is the shape in its id, "3hop1" of "3hop1__…". Raises FieldError."""
        question = super().published(record)
        shape, is_shape, _ = question.id.partition("__")
        suffix = "" if question.answerable or not question.id else "-unanswerable"
        return replace(question, id=question.id + suffix, kind=shape if is_shape else "")


def read_aliases(path: Path) -> dict[str, tuple[str, ...]]:
    """Wikidata id → aliases and demonyms. Raises DataError at the first bad line, since scores depend on it."""
    aliases: dict[str, tuple[str, ...]] = {}
    for row in file_rows(path):
        if isinstance(row, BadRecord):
            raise DataError(str(row))
        try:
            entry = as_record(row.value, "record")
            names = (not_blank(entry.get(name, []), name) for name in ("aliases", "demonyms"))
            aliases[text_in(entry, "Q_id")] = tuple(dict.fromkeys(name for each in names for name in each))
        except FieldError as fault:
            raise DataError(f"{path}:{row.number}: {fault}") from fault
    return aliases
