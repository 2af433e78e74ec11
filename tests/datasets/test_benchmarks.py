"""Every benchmark in its published form, as hub columns and as FlashRAG's lines."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sleuth.datasets import benchmarks, load_questions
from sleuth.errors import DataError
from sleuth.fields import FieldError
from sleuth.types import Question

TRIVIA: dict[str, Any] = {
    "Question": "Which bird is on the flag of Ostria?",
    "QuestionId": "tc_1",
    "Answer": {
        "Value": "Heron",
        "Aliases": ["Grey heron", "Heron"],
        "NormalizedAliases": ["grey heron", "", "heron"],
        "NormalizedValue": "heron",
        "HumanAnswers": ["a heron"],
        "Type": "WikipediaEntity",
    },
    "EntityPages": [],
}


def titles(question: Question, ids: Any) -> list[str]:
    by_id = {p.id: p.title for p in question.passages}
    return [by_id[i] for i in ids]


def as_columns(record: dict[str, Any], sentences: str) -> dict[str, Any]:
    """The record as the hub has it: nested lists become columns."""
    facts, context = record["supporting_facts"], record["context"]
    return {
        **record,
        "supporting_facts": {"title": [f[0] for f in facts], "sent_id": [f[1] for f in facts]},
        "context": {"title": [c[0] for c in context], sentences: [c[1] for c in context]},
    }


def test_hotpotqa_as_published(hotpot: dict[str, Any], save: Callable[..., Path]):
    (question,) = load_questions(f"hotpotqa:{save('dev.json', [hotpot])}").questions
    assert (question.id, question.answers, question.kind) == ("h1", ("Lumme",), "bridge")
    assert question.dataset == "hotpotqa"
    assert [p.title for p in question.passages] == ["Karstad", "Odo Verrin", "Pell"]
    assert question.passages[0].text == "Karstad is a town. The river Lumme flows through it."
    assert titles(question, question.gold_ids) == ["Odo Verrin", "Karstad"]
    first, last = question.hops
    assert titles(question, [first.passage_id, last.passage_id]) == ["Odo Verrin", "Karstad"]
    assert (first.query, first.answer, first.need) == ("painter Odo Verrin born", "Karstad", "Odo Verrin")
    assert (last.query, last.answer, last.need) == ("Karstad", "Lumme", "the river of Karstad")
    del hotpot["answer"]  # as in the test split
    loaded = load_questions(f"hotpotqa:{save('test.json', [hotpot])}")
    assert [(bad.line, bad.field, bad.reason) for bad in loaded.bad] == [(1, "answer", "missing")]


def test_hub_columns_and_flashrag_lines_read_the_same(hotpot: dict[str, Any], twowiki: dict[str, Any]):
    columns = as_columns(hotpot, "sentences")
    line = {"id": "h1", "question": hotpot["question"], "golden_answers": ["Lumme"], "metadata": columns}
    read = benchmarks.HotpotQAReader().question_of
    assert read(columns) == read(hotpot) == read(line)
    columns = as_columns(twowiki, "content")
    fact, relation, entity = zip(*twowiki["evidences"], strict=True)
    columns["evidences"] = {"fact": list(fact), "relation": list(relation), "entity": list(entity)}
    assert benchmarks.TwoWikiReader().question_of(columns) == benchmarks.TwoWikiReader().question_of(twowiki)
    hub = {"id": 42, "prop": "job", "question": "q", "possible_answers": '["queen"]', "s_pop": 31}
    line = {"id": "42", "question": "q", "golden_answers": ["queen"], "metadata": {"prop": "job"}}
    assert benchmarks.PopQAReader().question_of(hub) == benchmarks.PopQAReader().question_of(line)
    for reader in (benchmarks.NQReader(), benchmarks.BamboogleReader(), benchmarks.TriviaQAReader()):
        question = reader.question_of({"id": "test_0", "question": "q", "golden_answers": ["a", "b"]})
        assert (question.id, question.answers) == ("test_0", ("a", "b"))


def test_hotpotqa_without_a_gold_paragraph_has_no_gold(hotpot: dict[str, Any]):
    hotpot["supporting_facts"][0][1] = 99  # a sentence beyond the paragraph does no harm
    assert len(benchmarks.HotpotQAReader().question_of(hotpot).gold_ids) == 2
    del hotpot["context"][0]
    question = benchmarks.HotpotQAReader().question_of(hotpot)
    assert (len(question.passages), question.gold_ids, question.hops) == (2, (), ())


def test_2wiki_triples_become_hops(twowiki: dict[str, Any]):
    question = benchmarks.TwoWikiReader().question_of(twowiki)
    assert (question.kind, question.dataset) == ("compositional", "2wiki")
    assert titles(question, [h.passage_id for h in question.hops]) == ["Grey Harbour (film)", "Ansel Tome"]
    assert [(h.query, h.answer, h.need) for h in question.hops] == [
        ("Grey Harbour director", "Ansel Tome", "the director of Grey Harbour"),
        ("Ansel Tome date of death", "3 May 1971", "the date of death of Ansel Tome"),
    ]


def test_2wiki_chain_with_another_name_or_without_triples(twowiki: dict[str, Any]):
    twowiki["evidences"][0][0] = "Grauer Hafen"  # the last paragraph is its
    hops = benchmarks.TwoWikiReader().question_of(twowiki).hops
    assert [hop.query for hop in hops] == ["Grauer Hafen director", "Ansel Tome date of death"]
    del twowiki["evidences"]
    question = benchmarks.TwoWikiReader().question_of(twowiki)
    assert titles(question, [h.passage_id for h in question.hops]) == ["Grey Harbour (film)", "Ansel Tome"]


def test_2wiki_aliases_are_accepted_answers(twowiki: dict[str, Any], save: Callable[..., Path]):
    path = save("dev.json", [twowiki])
    path.with_name("id_aliases.json").write_text(
        '{"Q_id": "Q77", "aliases": ["May 3, 1971", "3 May 1971"], "demonyms": ["the third"]}\n'
        '{"Q_id": "Q78", "aliases": ["other"], "demonyms": []}\n'
    )
    (question,) = benchmarks.TwoWikiReader().load(path).questions
    assert question.answers == ("3 May 1971", "May 3, 1971", "the third")
    path.with_name("id_aliases.json").write_text('{"Q_id": "Q77", "aliases": [3], "demonyms": []}\n')
    with pytest.raises(DataError, match=r"id_aliases.json:1: aliases\[0\]: must be text"):
        benchmarks.TwoWikiReader().load(path)


def test_musique_decomposition_becomes_hops(musique: dict[str, Any], save: Callable[..., Path]):
    (question,) = benchmarks.MuSiQueReader().load(save("musique_ans_v1.0_dev.jsonl", [musique])).questions
    assert (question.answers, question.kind) == (("Mara Lind", "Queen Mara"), "2hop")
    assert titles(question, question.gold_ids) == ["Quen", "Ostria"]
    assert [h.passage_id for h in question.hops] == list(question.gold_ids)
    assert [(h.query, h.answer, h.need) for h in question.hops] == [
        ("Quen country", "Ostria", "the country of Quen"),
        ("Who was the first queen of Ostria", "Mara Lind", "the first queen of Ostria"),
    ]
    musique["question_decomposition"][0]["paragraph_support_idx"] = 17
    assert benchmarks.MuSiQueReader().question_of(musique).hops == ()  # its paragraph is missing


def test_musique_unanswerable_twin_gets_its_own_id(musique: dict[str, Any], save: Callable[..., Path]):
    twin = {**musique, "answerable": False, "paragraphs": musique["paragraphs"][:2]}
    steps = musique["question_decomposition"]
    twin["question_decomposition"] = [{**step, "paragraph_support_idx": None} for step in steps]
    loaded = benchmarks.MuSiQueReader().load(save("musique_full_v1.0_dev.jsonl", [musique, twin]))
    assert not loaded.bad
    answerable, unanswerable = loaded.questions
    assert (unanswerable.id, unanswerable.kind) == (f"{answerable.id}-unanswerable", "2hop")
    assert (unanswerable.answers, unanswerable.gold_ids, unanswerable.hops) == ((), (), ())
    assert not unanswerable.answerable


def test_nq_ids_come_from_the_text(save: Callable[..., Path]):
    rows = [
        {"question": "who wrote the moss atlas", "answer": ["Ida Renn", "I. Renn"]},
        {"question": "when was the moss atlas printed", "answer": ["1904"]},
    ]
    first, second = benchmarks.NQReader().load(save("NQ-open.dev.jsonl", rows)).questions
    assert first.answers == ("Ida Renn", "I. Renn")
    assert first.id.startswith("nq-")
    assert second.id != first.id
    # Ids by place would report question 2 of train and question 2 of dev as a leak.
    assert benchmarks.NQReader().load(save("other.jsonl", rows[::-1])).questions[1].id == first.id
    repeated = benchmarks.NQReader().load(save("twice.jsonl", rows[:1] * 2))
    assert [q.id for q in repeated.questions] == [first.id, f"{first.id}-2"]


@pytest.mark.parametrize("answer", ["one", ["one"], '["one"]'])
def test_nq_answer_is_text_list_or_json(answer: object):
    assert benchmarks.NQReader().question_of({"question": "q", "answer": answer}).answers == ("one",)


@pytest.mark.parametrize("container", ["Data", "data"])
@pytest.mark.parametrize("indent", [None, 4])
def test_triviaqa_file_is_one_object(tmp_path: Path, container: str, indent: int | None):
    path = tmp_path / "wikipedia-dev.json"
    text = json.dumps({"Version": 1.0, container: [TRIVIA]}, indent=indent)
    path.write_text(text)
    (question,) = benchmarks.TriviaQAReader().load(path).questions
    assert (question.id, question.dataset) == ("tc_1", "triviaqa")
    assert question.answers == ("Heron", "a heron", "Grey heron", "grey heron", "heron")
    path.write_text(text[:-20])
    with pytest.raises(DataError, match="not JSON"):
        benchmarks.TriviaQAReader().load(path)


def test_triviaqa_from_the_hub():
    answer = {"value": "Heron", "aliases": ["Grey heron"], "normalized_aliases": ["grey heron"]}
    row = {"question": TRIVIA["Question"], "question_id": "tc_1", "answer": answer}
    question = benchmarks.TriviaQAReader().question_of(row)
    assert (question.id, question.answers) == ("tc_1", ("Heron", "Grey heron", "grey heron"))
    with pytest.raises(FieldError, match=r"answer.Value: empty"):  # the test split
        benchmarks.TriviaQAReader().question_of({**row, "answer": {"value": "", "aliases": []}})


def test_popqa_table_has_answers_as_json(tmp_path: Path):
    path = tmp_path / "popQA.tsv"
    path.write_text(
        "id\tsubj\tprop\tobj\ts_pop\to_pop\tquestion\tpossible_answers\n"
        '42\tMara Lind\toccupation\tqueen\t31\t900\tWhat is she?\t"[""queen"", ""monarch""]"\n'
        "43\tIda Renn\toccupation\twriter\t3\t9\tWhat is Ida Renn's occupation?\tnot a list\n"
    )
    loaded = benchmarks.PopQAReader().load(path)
    (question,) = loaded.questions
    assert (question.id, question.answers, question.kind) == ("42", ("queen", "monarch"), "occupation")
    assert [(bad.line, bad.field) for bad in loaded.bad] == [(3, "possible_answers")]


def test_bamboogle_csv_with_commas_and_line_ends(tmp_path: Path):
    path = tmp_path / "bamboogle.csv"
    path.write_text('Question,Answer\n"Who led Ostria, when Pell\nburned?",Mara Lind\n,nobody\nWhy?,\n')
    loaded = benchmarks.BamboogleReader().load(path)
    (question,) = loaded.questions
    assert question.text == "Who led Ostria, when Pell\nburned?"
    assert question.answers == ("Mara Lind",)
    bad = [(bad.line, bad.field, bad.reason) for bad in loaded.bad]
    assert bad == [(4, "Question", "empty"), (5, "Answer", "empty")]
