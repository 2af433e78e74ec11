"""Scores beyond EM and F1 by hand, with missing predictions counted as wrong."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from sleuth.evaluation.answer_files.file_scores import file_scores
from sleuth.evaluation.answer_files.predictions import Row
from sleuth.evaluation.answer_files.scores import score_predictions
from sleuth.metrics.answers import rules_for

HOTPOT, TWOWIKI, MUSIQUE, SQUAD2 = (rules_for(name) for name in ("hotpotqa", "2wiki", "musique", "squad2"))
FACTS = (("A", 0), ("B", 1))


def test_facts_and_joint_of_hotpotqa() -> None:
    rows = [
        Row("a", "Paris", ("Paris",), facts=FACTS, gold_facts=FACTS),
        Row("b", "Paris", ("Paris",), gold_facts=FACTS),
        Row("c", "Rome", ("Paris",), facts=FACTS[:1], gold_facts=FACTS),
        Row("d", "Paris", ("Paris",), facts=FACTS),
    ]
    means = file_scores(rows, HOTPOT).means
    # b predicts no facts and is wrong; d has no gold facts and is left out.
    assert (means["support_em"].n, means["support_em"].left_out) == (3, 1)
    values = [means[name].value for name in ("support_em", "support_f1", "joint_em", "joint_f1")]
    assert values == pytest.approx([1 / 3, (1 + 0 + 2 / 3) / 3, 1 / 3, 1 / 3])
    assert (means["joint_em"].n, means["joint_em"].left_out) == (3, 1)


def test_a_question_without_a_row_is_wrong_in_every_score() -> None:
    rows = [Row("a", "Paris", ("Paris",), facts=FACTS, gold_facts=FACTS), Row("b", None, ("Paris",))]
    means = file_scores(rows, HOTPOT).means
    assert [means[name].value for name in ("em", "support_em", "joint_em")] == [0.5, 0.5, 0.5]


def test_2wiki_has_a_joint_score_only_with_triples() -> None:
    row = Row("a", "Paris", ("Paris",), facts=FACTS, gold_facts=FACTS)
    assert "joint_em" not in file_scores([row], TWOWIKI).means
    gold = ((("Ada", "born", "London"),),)
    whole = replace(row, triples=(("ada", "born", "london"),), gold_triples=gold)
    assert file_scores([whole], TWOWIKI).means["joint_em"].value == 1.0
    half = replace(row, id="b", gold_triples=gold)
    assert file_scores([whole, half], TWOWIKI).means["joint_em"].value == 0.5


def test_musique_support_counts_answerable_questions_only() -> None:
    rows = [
        Row("a", "Paris", ("Paris",), paragraphs=(1, 2), gold_paragraphs=(1,)),
        Row("a-unanswerable", "", (), paragraphs=(5,), gold_paragraphs=()),
    ]
    extra = file_scores(rows, MUSIQUE)
    assert extra.means["support_f1"].n == 1
    values = [extra.means[name].value for name in ("support_f1", "group_answer_f1", "group_support_f1")]
    assert values == pytest.approx([2 / 3, 1.0, 2 / 3])
    assert extra.figures["groups"] == {"n": 1, "incomplete": 0}
    assert extra.figures["refusal"]["recall"] == 1.0


def test_musique_groups_without_a_twin_or_an_id_are_incomplete() -> None:
    rows = [Row("a", "Paris", ("Paris",)), Row("", "", ()), Row("", "", ()), Row("b-unanswerable", None, ())]
    extra = file_scores(rows, MUSIQUE)
    assert extra.figures["groups"] == {"n": 4, "incomplete": 4}
    assert extra.means["group_answer_f1"].value == 0.0
    # A missing prediction says nothing about answerability.
    rows = [Row("a", "Paris", ("Paris",)), Row("a-unanswerable", None, ())]
    assert file_scores(rows, MUSIQUE).means["group_sufficiency"].value == 0.0


def test_answerable_and_unanswerable_apart() -> None:
    rows = [Row("a", "Paris", ("Paris",)), Row("b", "Rome", ("Paris",)), Row("c", "", ()), Row("d", None, ())]
    extra = file_scores(rows, SQUAD2)
    assert (extra.means["has_answer_em"].value, extra.means["no_answer_em"].value) == (0.5, 0.5)
    refusal = extra.figures["refusal"]
    assert (refusal["precision"], refusal["recall"], refusal["over_refusal"]) == (1.0, 0.5, 0.0)
    assert "has_answer_em" not in file_scores(rows[:2], SQUAD2).means


def test_confidence_gives_risk_and_coverage() -> None:
    rows = [
        Row("a", "Paris", ("Paris",), confidence=0.9),
        Row("b", "Rome", ("Paris",), confidence=0.5),
        Row("c", None, ("Paris",)),
        Row("d", "Paris", ("Paris",)),
    ]
    selective = file_scores(rows, HOTPOT).figures["selective"]
    # a, b, then the missing c: risks 0, 1/2, 2/3; d is not ranked.
    assert (selective["n"], selective["without_confidence"]) == (3, 1)
    assert selective["aurc"] == pytest.approx((0 + 1 / 2 + 2 / 3) / 3)
    assert selective["coverage_at_risk_0.05"] == pytest.approx(1 / 3)
    # A missing prediction is less sure than any other.
    sure = (("a", "x", -1e300), ("b", "x", 0.5), ("c", None, 0.9))
    rows = [Row(name, prediction, ("x",), confidence=value) for name, prediction, value in sure]
    selective = file_scores(rows, rules_for("nq")).figures["selective"]
    # Risks 0, 0 and 1/3; sharing the last place with "a" would give 0, 1/4 and 1/3.
    assert selective["aurc"] == pytest.approx(1 / 9)
    assert selective["coverage_at_risk_0.05"] == pytest.approx(2 / 3)


def test_the_best_threshold_does_not_credit_missing_predictions() -> None:
    rows = [
        Row("a", "Paris", ("Paris",), no_answer_probability=0.1),
        Row("b", "Rome", (), no_answer_probability=0.9),
        Row("c", None, ()),
    ]
    thresholds = file_scores(rows, SQUAD2).figures["thresholds"]
    assert thresholds.pop("without_probability") == 0
    best = {"best_em": 2 / 3, "best_em_threshold": 0.1, "best_f1": 2 / 3, "best_f1_threshold": 0.1}
    assert thresholds == pytest.approx(best)


def test_all_refused_and_one_question_are_finite(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"prediction": "", "answers": [], "confidence": 1, "no_answer_probability": 1}\n')
    plain = score_predictions(path, "squad2").to_dict()
    again = json.loads(json.dumps(plain, allow_nan=False))
    assert again["refusal"]["precision"] == 1.0
    assert again["refusal"]["answered_precision"] is None
    assert again["selective"]["aurc"] == 0.0
    assert again["thresholds"]["best_em"] == 1.0
