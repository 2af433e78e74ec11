from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sleuth.datasets.twowiki import TwoWikiReader
from sleuth.errors import DataError


def test_triples_become_hops(twowiki: dict[str, Any]):
    question = TwoWikiReader().question_of(twowiki)
    by_id = {p.id: p.title for p in question.passages}
    assert [(by_id[h.passage_id], h.query, h.answer, h.need) for h in question.hops] == [
        ("Grey Harbour (film)", "Grey Harbour director", "Ansel Tome", "the director of Grey Harbour"),
        ("Ansel Tome", "Ansel Tome date of death", "3 May 1971", "the date of death of Ansel Tome"),
    ]
    assert (question.kind, question.dataset) == ("compositional", "2wiki")


def test_hub_columns_read_the_same(twowiki: dict[str, Any]):
    columns = {
        "_id": "w1",
        "question": twowiki["question"],
        "answer": twowiki["answer"],
        "answer_id": "Q77",
        "type": "compositional",
        "context": {
            "title": [title for title, _ in twowiki["context"]],
            "content": [sentences for _, sentences in twowiki["context"]],
        },
        "supporting_facts": {"title": ["Grey Harbour (film)", "Ansel Tome"], "sent_id": [0, 0]},
        "evidences": {
            "fact": ["Grey Harbour", "Ansel Tome"],
            "relation": ["director", "date of death"],
            "entity": ["Ansel Tome", "3 May 1971"],
        },
    }
    assert TwoWikiReader().question_of(columns) == TwoWikiReader().question_of(twowiki)


def test_a_subject_under_another_name_gets_the_paragraph_left_over(twowiki: dict[str, Any]):
    twowiki["evidences"][0][0] = "Grauer Hafen"
    assert [hop.query for hop in TwoWikiReader().question_of(twowiki).hops] == [
        "Grauer Hafen director",
        "Ansel Tome date of death",
    ]


def test_without_triples_the_chain_comes_from_the_paragraphs(twowiki: dict[str, Any]):
    del twowiki["evidences"]
    question = TwoWikiReader().question_of(twowiki)
    by_id = {p.id: p.title for p in question.passages}
    assert [by_id[hop.passage_id] for hop in question.hops] == ["Grey Harbour (film)", "Ansel Tome"]


def test_aliases_beside_the_file_are_accepted_answers(twowiki: dict[str, Any], save: Callable[..., Path]):
    path = save("dev.json", [twowiki])
    aliases = path.with_name("id_aliases.json")
    aliases.write_text(
        '{"Q_id": "Q77", "aliases": ["May 3, 1971", "3 May 1971"], "demonyms": ["the third"]}\n'
        '{"Q_id": "Q78", "aliases": ["other"], "demonyms": []}\n'
    )
    (question,) = TwoWikiReader().load(path).questions
    assert question.answers == ("3 May 1971", "May 3, 1971", "the third")


def test_a_broken_alias_file_stops_since_scores_depend_on_it(
    twowiki: dict[str, Any], save: Callable[..., Path]
):
    path = save("dev.json", [twowiki])
    path.with_name("id_aliases.json").write_text('{"Q_id": "Q77", "aliases": [3], "demonyms": []}\n')
    with pytest.raises(DataError, match=r"id_aliases.json:1: aliases\[0\]: must be text"):
        TwoWikiReader().load(path)
