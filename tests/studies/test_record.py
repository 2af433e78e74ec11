"""A finished job counts only for the recipe, index and earlier jobs that its folder was made with."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sleuth.evaluation.result import RESULT
from sleuth.storage import write_json
from sleuth.studies.outcome import outcome
from sleuth.studies.plan import Job, Place, plan
from sleuth.studies.record import all_changed, changed, claim
from sleuth.studies.run import DONE, run_jobs
from sleuth.studies.study import Row, Study, System

STUDY = Study("s", "t", (Row("a", cpu=System("eval-rar/cpu")),), {"cpu": {"f": "factbook:dev"}})


def finished(folder: Path, index: str = "") -> list[Job]:
    """The jobs of STUDY, all done."""
    jobs = plan(STUDY, Place(folder, "cpu"))
    for job in jobs:
        claim(job, index)
        (job.folder / (DONE if job.kind == "train" else RESULT)).write_text("{}")
    return jobs


def with_reward(job: Job) -> Job:
    """The same job after its recipe was edited under the same name."""
    return replace(job, recipe=job.recipe.with_settings(("reward.bonus=0.7",)))


def test_a_finished_job_of_another_recipe_is_not_reused(tmp_path: Path):
    train, evaluate = finished(tmp_path)
    heard: list[str] = []
    assert run_jobs([train, evaluate], "", heard.append) == {}
    assert all("done before" in line for line in heard)
    failed = run_jobs([with_reward(train), evaluate], "", heard.append)
    assert "differs from this job in recipe.reward.bonus" in failed[str(train.folder)]
    assert f"needs {train.folder}" in failed[str(evaluate.folder)]
    assert set(all_changed([with_reward(train), evaluate], None)) == set(failed)
    # its figures are not shown either
    figures = outcome(STUDY, Place(tmp_path, "cpu"), failed)["rows"][0]["figures"]
    assert [f["value"] for f in figures] == [None]


@pytest.mark.parametrize("edit", ["passages", "name"])
def test_a_finished_job_of_another_index_is_not_reused(edit: str, tmp_path: Path):
    index = tmp_path / "index"
    write_json(index / "manifest.json", {"sha256": "one"})
    train, evaluate = finished(tmp_path / "out", str(index))
    assert changed(train, str(index)) == ""
    if edit == "passages":
        write_json(index / "manifest.json", {"sha256": "two"})
    other = str(index) if edit == "passages" else "http://elsewhere"
    assert "differs from this job in index" in changed(train, other)
    assert "differs from this job in index" in changed(evaluate, other)
    assert changed(train, None) == ""


def test_an_evaluation_follows_from_the_training_before_it(tmp_path: Path):
    train, evaluate = finished(tmp_path)
    record = train.folder / "job.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"index": "another"}))
    assert "differs from this job in weights" in changed(evaluate, "")


def test_transcripts_of_a_recipe_take_the_place_of_its_script(tmp_path: Path):
    lessons = tmp_path / "lessons" / "eval-rar" / "cpu.jsonl"
    lessons.parent.mkdir(parents=True)
    assert plan(STUDY, Place(tmp_path, "cpu", lessons=tmp_path / "lessons"))[0].lessons is None
    lessons.write_text("one")
    train = plan(STUDY, Place(tmp_path, "cpu", lessons=tmp_path / "lessons"))[0]
    assert train.lessons == lessons
    claim(train, "")
    assert changed(train, "") == ""
    lessons.write_text("two")
    assert "differs from this job in demonstrations file" in changed(train, "")


def test_a_run_of_an_older_version_is_known_by_its_recipe(tmp_path: Path):
    train, _ = plan(STUDY, Place(tmp_path, "cpu"))
    write_json(train.folder / "recipe.json", train.recipe.to_dict())
    assert changed(train, "") == ""
    assert "recipe.reward.bonus" in changed(with_reward(train), "")
