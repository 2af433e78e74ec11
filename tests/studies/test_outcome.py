"""Figures of a study from evaluations that a scripted engine wrote: which evaluation has which figure."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines.base import Request
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.errors import ConfigError
from sleuth.evaluation.result import TRAJECTORIES
from sleuth.retrievers.evidence import Evidence
from sleuth.studies.outcome import outcome
from sleuth.studies.plan import Job, Place, plan
from sleuth.studies.study import Row, Study, System
from sleuth.types import Passage, Question
from support.episodes import run_evaluation

READ = ("eviomni/reader-cpu", "eviomni/read-cpu")
REPLIES = {
    "eviomni/extract-cpu": "<reason>It is Paris.</reason><extract>Capital: Paris</extract>",
    "eviomni/reader-cpu": "Paris",
    "eviomni/read-cpu": "Paris",
}
PASSAGES = (
    Passage("a", "France", "Capital: Paris, the capital."),  # five words with the title
    Passage("b", "Tea", "Tea is no capital of anything."),  # seven
)
ASKED = [Question(f"q{i}", f"Capital {i}?", ("Paris",), passages=PASSAGES, dataset="d") for i in range(3)]


def evaluate(job: Job, asked: Sequence[Question] = ASKED) -> None:
    """The evaluation of a job, whose model writes what REPLIES says."""
    reply = REPLIES[job.recipe.name]

    def write(request: Request, turn: int) -> str:
        return reply

    retriever = Evidence(str(job.evidence / TRAJECTORIES)) if job.evidence else job.recipe.retriever
    limits = replace(Limits.of(job.recipe.scale), max_context=100_000)
    parts: dict[str, Any] = {"protocol": job.recipe.protocol, "retriever": retriever, "limits": limits}
    run_evaluation(asked, engine=ScriptedEngine(write), folder=job.folder, width=4, **parts)


def measured(study: Study, place: Place) -> dict[tuple[str, str], dict[str, Any]]:
    """Figures of a study by row and measure, after all its evaluations."""
    for job in plan(study, place):
        if job.kind == "evaluate":
            evaluate(job)
    rows = outcome(study, place)["rows"]
    return {(row["label"], f["measure"]): f for row in rows for f in row["figures"]}


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_compression_is_measured_where_the_evidence_is_written_or_the_passages_are_shorter(
    seeds: tuple[int, ...], tmp_path: Path
):
    rows = (
        Row("Full", cpu=System("eviomni/reader-cpu")),
        Row("Short", cpu=System("eviomni/reader-cpu", ("scale.top_k=1",))),
        Row("EviOmni", cpu=System("eviomni/cpu", (), "eviomni/extract-cpu", *READ)),
    )
    ratios = ("compression_ratio", "total_compression_ratio")
    study = Study("s", "t", rows, {"cpu": {"d": "jsonl:d"}}, ("em", *ratios, "evidence_recall"), whole="Full")
    found = measured(study, Place(tmp_path, "cpu", seeds))
    for ratio in ratios:
        assert found["Full", ratio]["value"] == 1.0
        assert found["Short", ratio]["value"] == pytest.approx(12 / 5)
        assert found["EviOmni", ratio]["value"] == 12 / 2
        assert found["EviOmni", ratio]["n"] == 3
    assert found["EviOmni", "evidence_recall"]["value"] == 1.0
    assert found["EviOmni", "em"]["value"] == 1.0


def test_differences_pair_by_question_and_over_the_seeds_that_both_have(tmp_path: Path) -> None:
    reader = "eviomni/reader-cpu"
    rows = (Row("A", cpu=System(reader)), Row("B", cpu=System(reader, ("scale.top_k=1",))))
    study = Study("s", "t", rows, {"cpu": {"d": "jsonl:d"}}, ("em",))
    place = Place(tmp_path, "cpu", (0, 1))
    asked = {"A": ASKED[:2], "B": ASKED[1:]}
    for job in plan(study, place):
        if job.kind == "evaluate" and (job.row, job.seed) != ("A", 1):
            evaluate(job, asked[job.row])
    first, second = outcome(study, place)["rows"]
    assert (first["seeds"], second["seeds"]) == ([0], [0, 1])
    (difference,) = second["differences"]
    assert (difference["n"], difference["value"]) == (1, 0.0)  # the only question that both were asked


def test_every_system_has_a_folder_of_its_own(tmp_path: Path) -> None:
    def jobs(*systems: System) -> list[Job]:
        rows = tuple(Row(f"row {n}", cpu=system) for n, system in enumerate(systems))
        study = Study("s", "t", rows, {"cpu": {"d": "jsonl:d"}}, ("em",))
        return [job for job in plan(study, Place(tmp_path, "cpu")) if job.kind == "evaluate"]

    one, other = (System("search-r1/cpu", (), shown) for shown in ("", "autorefine/cpu"))
    assert len({job.folder for job in jobs(one, other)}) == 2
    read = ("eviomni/cpu", (), "eviomni/extract-cpu")
    assert len(jobs(*(System(*read, READ[0], reads) for reads in READ))) == 3  # an extractor and two readers
    with pytest.raises(ConfigError, match="rows row 0 and row 1 of s would share"):
        jobs(*(System(*read, reader, READ[1]) for reader in READ))
