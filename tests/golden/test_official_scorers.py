"""Scores equal the official scripts' values, case by case: 360 of our own cases for each data set.

official.json holds only numbers: the output of each script, run outside this repository, for the
inputs that cases.py makes.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from golden.cases import DATASETS, cases, fingerprint
from sleuth.evaluation.answer_files.scores import score_predictions
from sleuth.metrics.answers import Match, answer_match, exact_match, f1
from sleuth.metrics.no_answer import NoAnswer, best_threshold
from sleuth.metrics.sufficiency import Twin, group_scores
from sleuth.metrics.support import evidence_triples, joint, supporting_facts, supporting_paragraphs

OFFICIAL: dict[str, Any] = json.loads(Path(__file__).with_name("official.json").read_text(encoding="utf-8"))


def _agree(ours: list[float], dataset: str, name: str) -> None:
    official = OFFICIAL[dataset]["values"][name]
    assert len(ours) == len(official) >= 300
    wrong = [i for i, (a, b) in enumerate(zip(ours, official, strict=True)) if abs(a - b) > 1e-9]
    first = [(cases(dataset)[i], ours[i], official[i]) for i in wrong[:3]]
    assert not wrong, f"{name}: {len(wrong)} differ; {first}"


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_inputs_are_those_the_scripts_saw(dataset: str) -> None:
    assert fingerprint(dataset) == OFFICIAL[dataset]["inputs"]
    made = cases(dataset)
    assert sum(not case.prediction.strip() for case in made) >= 10
    assert sum(not case.prediction.isascii() for case in made) >= 30
    closed = [case for case in made if case.prediction.lower().strip(".! ") in ("yes", "no", "noanswer")]
    assert len(closed) >= 10
    assert dataset == "hotpotqa" or sum(len(case.golds) > 1 for case in made) >= 100


@pytest.mark.parametrize("dataset", DATASETS)
def test_answer_scores(dataset: str) -> None:
    made = cases(dataset)
    _agree([exact_match(case.prediction, case.golds, dataset) for case in made], dataset, "em")
    if dataset != "nq":  # its script has no F1
        _agree([f1(case.prediction, case.golds, dataset) for case in made], dataset, "f1")


@pytest.mark.parametrize("dataset", ["2wiki", "hotpotqa"])
def test_support_and_joint_scores(dataset: str) -> None:
    columns: dict[str, list[Match]] = {"": [], "sp_": [], "joint_": []}
    if dataset == "2wiki":
        columns["evi_"] = []
    for case in cases(dataset):
        parts = {
            "": answer_match(case.prediction, case.golds, dataset),
            "sp_": supporting_facts(case.facts, case.gold_facts, dataset),
        }
        if dataset == "2wiki":
            parts["evi_"] = evidence_triples(case.triples, case.gold_triples)
        for prefix, match in {**parts, "joint_": joint(list(parts.values()))}.items():
            columns[prefix].append(match)
    for prefix, matches in columns.items():
        _agree([match.em for match in matches], dataset, f"{prefix}em")
        _agree([match.f1 for match in matches], dataset, f"{prefix}f1")
        _agree([match.precision for match in matches], dataset, f"{prefix}prec")
        _agree([match.recall for match in matches], dataset, f"{prefix}recall")


def test_musique_support() -> None:
    matches = [supporting_paragraphs(c.paragraphs, c.gold_paragraphs) for c in cases("musique")]
    _agree([match.em for match in matches], "musique", "sp_em")
    _agree([match.f1 for match in matches], "musique", "sp_f1")


def test_musique_groups() -> None:
    made = cases("musique")
    answers = [f1(case.prediction, case.golds, "musique") for case in made]
    supports = [supporting_paragraphs(c.paragraphs, c.gold_paragraphs).f1 for c in made]
    for name, scores in (("group_answer_f1", answers), ("group_support_f1", supports)):
        # As in the run of the script: the twin of every third question counts as answerable.
        twins = [Twin(str(i), True, c.says_answerable, scores[i]) for i, c in enumerate(made)]
        twins += [Twin(str(i), False, i % 3 == 0) for i in range(len(made))]
        groups = group_scores(twins)
        assert groups.incomplete == ()
        _agree(list(groups.scores.values()), "musique", name)
        total = sum(groups.scores.values()) / len(groups.scores)
        assert total == pytest.approx(OFFICIAL["musique"]["totals"][name], abs=1e-9)


def test_squad2_thresholds() -> None:
    made, totals = cases("squad2"), OFFICIAL["squad2"]["totals"]
    for name, score in (("exact", exact_match), ("f1", f1)):
        questions = [
            NoAnswer(
                score(case.prediction, case.golds, "squad2"),
                answerable=bool(case.golds),
                gave_text=bool(case.prediction),
                probability=case.no_answer_probability,
            )
            for case in made
        ]
        best = best_threshold(questions)
        assert best is not None
        assert 100 * best.score == pytest.approx(totals[f"best_{name}"], abs=1e-6)
        assert best.threshold == totals[f"best_{name}_thresh"]
        for part, kept in (("HasAns", True), ("NoAns", False)):
            values = [question.score for question in questions if question.answerable is kept]
            assert 100 * sum(values) / len(values) == pytest.approx(totals[f"{part}_{name}"], abs=1e-6)


def _rows(dataset: str) -> list[dict[str, Any]]:
    """The cases as a predictions file; MuSiQue's with their twins."""
    rows: list[dict[str, Any]] = []
    for number, case in enumerate(cases(dataset)):
        row: dict[str, Any] = {"id": number, "prediction": case.prediction, "answers": case.golds}
        if dataset in ("2wiki", "hotpotqa"):
            row |= {"predicted_supporting_facts": case.facts, "supporting_facts": case.gold_facts}
        if dataset == "2wiki":
            row |= {"predicted_evidences": case.triples, "evidences": case.gold_triples}
        if dataset == "squad2":
            row["no_answer_probability"] = case.no_answer_probability
        if dataset == "musique":
            row |= {"predicted_support_idxs": case.paragraphs, "support_idxs": case.gold_paragraphs}
            row["predicted_answerable"] = case.says_answerable
            twin = {"answerable": False, "predicted_answerable": number % 3 == 0, "prediction": ""}
            rows.append({**row, **twin, "predicted_support_idxs": []})
        rows.append(row)
    return rows


COLUMNS = {
    "hotpotqa": "em f1 support_em support_f1 joint_em joint_f1",
    "2wiki": "support_em support_f1 evidence_em evidence_f1 joint_em joint_f1",
    "musique": "em f1 support_f1 group_answer_f1 group_support_f1",
    "nq": "em",
    "squad2": "em f1",
    "triviaqa": "em f1",
}
"""Data set → scores of a file that its script has too, under our names."""


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_file_of_predictions_scores_as_the_script_says(dataset: str, tmp_path: Path) -> None:
    path = tmp_path / "predictions.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in _rows(dataset)), encoding="utf-8")
    scored = score_predictions(path, dataset).to_dict()
    assert scored["bad_rows"]["count"] == 0
    for ours in COLUMNS[dataset].split():
        theirs = re.sub("^support", "sp", re.sub("^evidence", "evi", ours))
        values = OFFICIAL[dataset]["values"][theirs]
        assert scored[ours]["value"] == pytest.approx(sum(values) / len(values), abs=1e-9), ours
        assert scored[ours]["n"] == len(values)
    if dataset == "squad2":
        totals = OFFICIAL["squad2"]["totals"]
        assert 100 * scored["has_answer_f1"]["value"] == pytest.approx(totals["HasAns_f1"], abs=1e-6)
        assert 100 * scored["no_answer_em"]["value"] == pytest.approx(totals["NoAns_exact"], abs=1e-6)
        assert 100 * scored["thresholds"]["best_em"] == pytest.approx(totals["best_exact"], abs=1e-6)
        assert scored["thresholds"]["best_f1_threshold"] == totals["best_f1_thresh"]
