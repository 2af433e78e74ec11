from collections.abc import Callable
from pathlib import Path
from typing import Any

from sleuth.datasets.musique import MuSiQueReader


def test_published_record(musique: dict[str, Any], save: Callable[..., Path]):
    (question,) = MuSiQueReader().load(save("musique_ans_v1.0_dev.jsonl", [musique])).questions
    assert question.answers == ("Mara Lind", "Queen Mara")
    assert (question.kind, question.dataset) == ("2hop", "musique")
    assert list(question.gold_ids) == [question.passages[1].id, question.passages[2].id]


def test_decomposition_becomes_hops(musique: dict[str, Any]):
    question = MuSiQueReader().question_of(musique)
    assert [(h.query, h.passage_id, h.answer, h.need) for h in question.hops] == [
        ("Quen country", question.passages[1].id, "Ostria", "the country of Quen"),
        (
            "Who was the first queen of Ostria",
            question.passages[2].id,
            "Mara Lind",
            "the first queen of Ostria",
        ),
    ]


def test_the_unanswerable_twin_is_another_question(musique: dict[str, Any], save: Callable[..., Path]):
    twin = {**musique, "answerable": False, "paragraphs": musique["paragraphs"][:2]}
    twin["question_decomposition"] = [
        {**s, "paragraph_support_idx": None} for s in musique["question_decomposition"]
    ]
    loaded = MuSiQueReader().load(save("musique_full_v1.0_dev.jsonl", [musique, twin]))
    assert not loaded.bad
    answerable, unanswerable = loaded.questions
    assert unanswerable.id == f"{answerable.id}-unanswerable"
    assert (unanswerable.answers, unanswerable.gold_ids, unanswerable.hops) == ((), (), ())
    assert not unanswerable.answerable


def test_a_chain_with_a_hole_is_no_chain(musique: dict[str, Any]):
    musique["question_decomposition"][0]["paragraph_support_idx"] = 17
    assert MuSiQueReader().question_of(musique).hops == ()
