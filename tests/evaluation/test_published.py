"""The papers' figures: cells and sums typed from the tables by hand, and our evaluations among them."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sleuth.errors import DataError
from sleuth.evaluation.published import (
    NOT_STATED,
    SHARES,
    PublishedFigure,
    origin_of,
    place,
    printed,
    published,
)
from sleuth.text import Normaliser

FORCED = "Base + FS + EQR"
UNREWARDED = "Eval-RAR-Instruct, no evaluation reward"


def _row(where: str, method: str, model: str) -> list[PublishedFigure]:
    source, table = where.split(", ")
    found = printed(source, table.partition(" (")[0])
    return [f for f in found if (f.place, f.method, f.model) == (where, method, model)]


@pytest.mark.parametrize(
    ("where", "method", "model", "dataset", "metric", "printed"),
    [
        ("Eval-RAR, Table 1", "Eval-RAR-Base", "Qwen2.5-3B-Base", "bamboogle", "em", 0.368),
        ("Eval-RAR, Table 1", "AutoRefine-Instruct", "Qwen2.5-3B-Instruct", "2wiki", "em", 0.380),
        ("Eval-RAR, Table 1", "CoT", "Qwen2.5-3B", "bamboogle", "em", 0.0),
        ("Eval-RAR, Table 2", UNREWARDED, "Qwen2.5-3B-Instruct", "nq", "em", 0.423),
        ("EviNote-RAG, Table 1", "EviNote-RAG", "Qwen2.5-7B-Instruct", "triviaqa", "f1", 0.794),
        ("EviNote-RAG, Table 1", "Search-R1", "Qwen2.5-7B-Instruct", "2wiki", "em", 0.244),
        ("EviNote-RAG, Table 1", "ReARTeR", "Qwen2.5-7B-Instruct", "triviaqa", "em", 0.506),
        ("ARENA, Table 3", "ARENA-Qwen-7B", "Qwen2.5-7B-Instruct", "musique", "llm_judge", 0.508),
        ("ARENA, Table 3", "self-ask-Qwen-7B", "Qwen2.5-7B-Instruct", "2wiki", "em", 0.004),
        ("ARENA, Table 3", "direct RAG", "Llama3.1-8B-Instruct", "2wiki", "f1", 0.478),
        ("ARENA, Table 7", "direct, no passages", "OpenAI-o1", "hotpotqa", "em", 0.510),
        ("EviNote-RAG, Table 3", "Base + NE", "Qwen2.5-7B-Instruct", "popqa", "em", 0.486),
        ("EviNote-RAG, Table 4", FORCED, "Qwen2.5-7B-Instruct", "bamboogle", "f1", 0.224),
        ("EviNote-RAG, Table 5", "Search-R1", "Qwen2.5-7B-Instruct", "hotpotqa", "em", 0.42),
        ("ARENA, Table 5", "direct RAG", "OpenAI-o1", "hotpotqa", "llm_judge", 0.89),
        ("ARENA, Table 6", "ARENA, accuracy by F1", "Qwen2.5-7B-Instruct", "hotpotqa", "em", 0.6),
        ("ARENA, Table 10", "ARENA, accuracy by GPT-4o", "Qwen2.5-7B-Instruct", "2wiki", "f1", 0.73),
        ("ARENA, Table 11", "ARENA, accuracy by EM", "Qwen2.5-7B-Instruct", "musique", "llm_judge", 0.508),
        ("EviOmni, Table 5", "FilCo", "Qwen2.5-1.5B-Instruct", "triviaqa", "latency", 0.82),
        (
            "EVO-RAG, Table 5",
            "EVO-RAG, backtrack alone",
            "not stated",
            "hotpotqa",
            "preference_accuracy",
            70.31,
        ),
        ("EVO-RAG, Table 3", "EVO-RAG", "Qwen-3-8B", "hotpotqa", "em", 57.6),
        ("EVO-RAG, Table 3", "RAG-Gym (ReSearch + PRM)", "LLaMA-3.1-8B", "musique", "f1", 60),
        ("EVO-RAG, Table 4", "EVO-RAG, Two-stage", "DeepSeek-8B", "hotpotqa", "f1", 68.7),
        ("EVO-RAG, Table 6", "EVO-RAG, Full (All Rewards)", "Qwen3-8B", "hotpotqa", "steps", 10.4),
        ("EviOmni, Table 4", "EviOmni", "Qwen2.5-1.5B-Instruct", "nq", "compression_ratio", 38.1),
        ("EviOmni, Table 4", "Zero", "Qwen2.5-1.5B-Instruct", "nq", "f1", 53.16),
        ("EviOmni, Table 4", "FilCo", "Qwen2.5-7B-Instruct", "hotpotqa", "em", 25.27),
        ("EviOmni, Table 3", "DPR", "none", "triviaqa", "ndcg_at_5", 70.35),
        ("verl-tool, step 200", "Search-R1, verl-tool", "Qwen2.5-3B-Base", "popqa", "em", 0.476),
        ("Tinker, results", "Search-R1", "Qwen2.5-7B-Instruct", "2wiki", "em", 34.6),
        ("ARENA, Table 2 (train)", "data", "none", "2wiki", "hops_4", 2151),
        ("ARENA, Table 2 (test)", "data", "none", "musique", "hops", 2.73),
        ("EviOmni, Figure 2", "rational evidence", "Qwen2.5-1.5B-Instruct", "hotpotqa", "kept_alone", 14.49),
        ("EVO-RAG, §3.3", "One head", "not stated", "hotpotqa", "preference_loss", 0.71),
    ],
)
def test_cells_are_the_papers(where: str, method: str, model: str, dataset: str, metric: str, printed: float):
    (cell,) = [f for f in _row(where, method, model) if (f.dataset, f.metric) == (dataset, metric)]
    assert cell.printed == printed
    # Percent becomes a share, counts stay.
    is_percent = printed > 1 and metric in SHARES
    assert cell.value == pytest.approx(printed / 100 if is_percent else printed)


@pytest.mark.parametrize(
    ("where", "method", "model", "mean"),
    [
        ("Eval-RAR, Table 1", "Eval-RAR-Base", "Qwen2.5-3B-Base", 0.413),
        ("Eval-RAR, Table 1", "Eval-RAR-Instruct", "Qwen2.5-3B-Instruct", 0.404),
        ("Eval-RAR, Table 1", "Search-R1-Base", "Qwen2.5-3B-Base", 0.312),
        ("Eval-RAR, Table 1", "Naive RAG", "Qwen2.5-3B", 0.270),
        ("verl-tool, step 200", "Search-R1, verl-tool", "Qwen2.5-3B-Base", 0.410),
        ("verl-tool, step 200", "Search-R1, original code", "Qwen2.5-3B-Base", 0.289),
    ],
)
def test_rows_have_the_mean_printed_in_the_paper(where: str, method: str, model: str, mean: float) -> None:
    values = {figure.dataset: figure.value for figure in _row(where, method, model)}
    assert values.pop("all seven", mean) == mean
    assert len(values) == 7
    assert math.fsum(values.values()) / 7 == pytest.approx(mean, abs=0.0005)


@pytest.mark.parametrize(
    ("source", "table", "name", "off"),
    # Some printed means are a thousandth off those of the printed cells.
    [
        ("Eval-RAR", "Table 1", "all seven", 0.0011),
        ("Eval-RAR", "Table 2", "all seven", 0.0011),
        ("EviOmni", "Table 5", "all three", 0.006),
        ("EviOmni", "Table 6", "all three", 0.0001),
    ],
)
def test_printed_means_are_those_of_the_cells(source: str, table: str, name: str, off: float) -> None:
    rows: dict[tuple[str, str], dict[str, float]] = {}
    for f in printed(source, table):
        rows.setdefault((f.method, f.model), {})[f.dataset] = f.value
    for cells in rows.values():
        mean = cells.pop(name)
        assert math.fsum(cells.values()) / len(cells) == pytest.approx(mean, abs=off)


def test_every_table_has_all_its_cells() -> None:
    counts = {
        "Eval-RAR, Table 1": 14 * 8,
        "Eval-RAR, Table 2": 4 * 8,
        "EviNote-RAG, Table 1": 13 * 14,
        "EviNote-RAG, Table 2": 3 * 14,
        "EviNote-RAG, Table 3": 5 * 14,
        "EviNote-RAG, Table 4": 6 * 14,
        "EviNote-RAG, Table 5": 7 * 14,
        "ARENA, Table 2": 7 + 23 + 18,  # the mixture has no number of paragraphs
        "ARENA, Table 3": 16 * 9,
        "ARENA, Table 5": 4 * 3,
        "ARENA, Table 6": 3 * 3,
        "ARENA, Table 10": 3 * 3,
        "ARENA, Table 11": 3 * 3,
        "EVO-RAG, Table 3": 5 * 8,
        "EVO-RAG, Table 5": 5 * 2,
        "EVO-RAG, §3.3": 2,
        "EviOmni, Table 4": 2 * (9 * 9 - 3),  # Zero compresses nothing
        "EviOmni, Table 1": 6,
        "EviOmni, Figure 2": 2,
        "EviOmni, Table 5": 3 * 4,
        "EviOmni, Table 6": 6 * 4,
    }
    assert {place: len(printed(*place.split(", "))) for place in counts} == counts


def test_every_figure_is_complete_and_unique() -> None:
    keys = Counter((f.place, f.method, f.model, f.dataset, f.metric) for f in published())
    assert [key for key, count in keys.items() if count > 1] == []
    known = {NOT_STATED, *Normaliser.__args__}  # type: ignore[attr-defined]
    for figure in published():
        assert figure.normaliser in known
        assert figure.split
        assert figure.decoding
        assert figure.retriever
        assert figure.n is None or figure.n > 0
        if figure.metric in SHARES:
            assert 0 <= figure.value <= 1


def test_filters_and_their_errors() -> None:
    assert {f.dataset for f in published("bamboogle")} == {"bamboogle"}
    methods = {f.method for f in published(method="evinote")}
    assert methods == {"EviNote-RAG", "EviNote-RAG, no evidence quality reward"}
    with pytest.raises(DataError, match="did you mean 'hotpotqa'"):
        published("hotpot")
    with pytest.raises(DataError, match="no published figures of a method 'Serch-R1'"):
        published(method="Serch-R1")


def test_an_evaluation_is_placed_among_them_with_what_differs(world: Any, tmp_path: Path) -> None:
    asked = world.questions(4, "hotpotqa") + world.questions(2, "arena")
    evaluation = world.run(tmp_path / "e", asked, world.knows(lambda i: i == 0), source="hotpotqa:dev.json")
    found = {one.metric: one for one in place(evaluation, published("hotpotqa"))}
    em = found["em"]
    assert (em.ours.value, em.ours.n, em.model) == (0.25, 4, "scripted")
    values = [figure.value for figure in em.published]
    assert values == sorted(values, reverse=True)
    differs = em.contrasts["ARENA, Table 3"]
    assert differs["questions"] == ("hotpotqa:dev.json, n = 4", "dev, 500 drawn at random, n = 500")
    assert differs["normaliser"] == ("squad", "arena")
    assert differs["decoding"][0] == "greedy"
    assert differs["retriever"][0] == "shelf, top 3"
    assert "llm_judge" not in found
    assert "SQuAD" in found["f1"].notes["EviOmni, Table 4"]
    # A table of the arena normaliser next to an evaluation by ARENA's rules differs in other things only.
    assert origin_of(evaluation, "arena", 2)["normaliser"] == "arena"


def test_an_evaluation_without_published_figures_is_an_error(world: Any, tmp_path: Path) -> None:
    evaluation = world.run(tmp_path / "e", world.questions(1, "squad"), world.knows(bool))
    with pytest.raises(DataError, match="figure on data set squad; there are: 2wiki, "):
        place(evaluation, published())
