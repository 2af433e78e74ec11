from collections.abc import Callable
from pathlib import Path
from typing import Any

from sleuth.datasets.hotpotqa import HotpotQAReader
from sleuth.types import Question


def read(record: dict[str, Any]) -> Question:
    return HotpotQAReader().question_of(record)


def test_published_record(hotpot: dict[str, Any], save: Callable[..., Path]):
    (question,) = HotpotQAReader().load(save("dev.json", [hotpot])).questions
    assert (question.id, question.answers, question.kind, question.dataset) == (
        "h1",
        ("Lumme",),
        "bridge",
        "hotpotqa",
    )
    assert [p.title for p in question.passages] == ["Karstad", "Odo Verrin", "Pell"]
    assert question.passages[0].text == "Karstad is a town. The river Lumme flows through it."
    by_id = {p.id: p.title for p in question.passages}
    assert [by_id[gold] for gold in question.gold_ids] == ["Odo Verrin", "Karstad"]
    assert question.answerable


def test_chain_leads_from_the_named_article_to_the_one_with_the_answer(hotpot: dict[str, Any]):
    question = read(hotpot)
    by_id = {p.id: p.title for p in question.passages}
    first, last = question.hops
    assert (by_id[first.passage_id], first.answer, first.need) == ("Odo Verrin", "Karstad", "Odo Verrin")
    assert first.query == "painter Odo Verrin born"
    assert (by_id[last.passage_id], last.query, last.answer) == ("Karstad", "Karstad", "Lumme")
    assert last.need == "the river of Karstad"


def test_hub_columns_and_flashrag_read_the_same(hotpot: dict[str, Any]):
    columns = {
        "id": "h1",
        "question": hotpot["question"],
        "answer": "Lumme",
        "type": "bridge",
        "level": "hard",
        "supporting_facts": {"title": ["Odo Verrin", "Karstad"], "sent_id": [0, 1]},
        "context": {
            "title": [title for title, _ in hotpot["context"]],
            "sentences": [sentences for _, sentences in hotpot["context"]],
        },
    }
    flashrag = {
        "id": "h1",
        "question": hotpot["question"],
        "golden_answers": ["Lumme"],
        "metadata": {name: columns[name] for name in ("type", "level", "supporting_facts", "context")},
    }
    assert read(columns) == read(hotpot) == read(flashrag)


def test_full_wiki_question_without_a_gold_paragraph_is_kept_without_gold(hotpot: dict[str, Any]):
    del hotpot["context"][0]
    question = read(hotpot)
    assert len(question.passages) == 2
    assert question.gold_ids == ()
    assert question.hops == ()


def test_sentence_numbers_beyond_the_paragraph_do_no_harm(hotpot: dict[str, Any]):
    hotpot["supporting_facts"][0][1] = 99
    assert len(read(hotpot).gold_ids) == 2


def test_comparison_looks_both_up_in_the_order_of_the_question(hotpot: dict[str, Any]):
    hotpot |= {
        "question": "Is Pell or Karstad the larger place?",
        "type": "comparison",
        "answer": "Karstad",
        "supporting_facts": [["Karstad", 0], ["Pell", 0]],
    }
    assert [hop.query for hop in read(hotpot).hops] == ["Pell", "Karstad"]


def test_equal_paragraphs_share_their_id_across_questions(hotpot: dict[str, Any]):
    other = {**hotpot, "_id": "h2", "context": [hotpot["context"][2]], "supporting_facts": []}
    assert read(other).passages[0] == read(hotpot).passages[2]


def test_test_split_without_answers_is_bad(hotpot: dict[str, Any], save: Callable[..., Path]):
    del hotpot["answer"]
    loaded = HotpotQAReader().load(save("test.json", [hotpot]))
    assert [(bad.line, bad.field, bad.reason) for bad in loaded.bad] == [(1, "answer", "missing")]
