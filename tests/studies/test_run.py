"""A study from training to its page, with a tiny real model: extractor, reader, noise, two seeds."""

import gc
import json
from pathlib import Path

import pytest

from sleuth.cli import main
from sleuth.engines.transformers import TransformersEngine

STUDY = """
from sleuth.studies.study import Row, Study, System

SMALL = {settings!r}
READ = ("eviomni/reader-cpu", "eviomni/read-cpu")
STUDY = Study(
    "mine/noise",
    "Evidence under noise",
    (
        Row("Vanilla", cpu=System("eviomni/vanilla-evidence-cpu", SMALL, "", *READ)),
        Row("EviOmni", cpu=System("eviomni/cpu", SMALL, "eviomni/extract-cpu", *READ), published="EviOmni"),
        Row("FilCo", lacks="no package"),
    ),
    {{"cpu": {{"cities": {data!r}}}}},
    ("em", "f1"),
    source=("EviOmni", "Table 4"),
    levels=(0, 2),
    spread=True,
    curves=("reward/total", "reward/answer_evidence"),
    last=("rollouts/actions",),
    overlap=("EviOmni", "Vanilla"),
)
"""


def questions(cities: list[str]) -> str:
    rows = [
        {
            "id": city,
            "question": f"Mayor of {city}?",
            "answers": [f"{city}son"],
            "paragraphs": [
                {"id": f"a{city}", "title": city, "text": f"Mayor: {city}son.", "is_supporting": True},
                {"id": f"b{city}", "title": "Tea", "text": f"A drink of {city}."},
            ],
        }
        for city in cities
    ]
    return "\n".join(map(json.dumps, rows))


@pytest.fixture
def study(tmp_path: Path, tiny_model: Path) -> Path:
    for name, cities in (("train", ["Arl", "Bri", "Cos", "Dor"]), ("dev", ["Elv", "Far", "Gor"])):
        (tmp_path / f"{name}.jsonl").write_text(questions(cities))
    sizes = {"model": tiny_model, "train_data": f"jsonl:{tmp_path / 'train.jsonl'}", "max_context": 1000}
    sizes |= {"max_new_tokens": 12, "warm_start_examples": 2, "warm_start_batch": 2, "batch": 1, "top_k": 2}
    settings = tuple(f"scale.{name}={value}" for name, value in sizes.items())
    path = tmp_path / "study.py"
    path.write_text(STUDY.format(settings=settings, data=f"jsonl:{tmp_path / 'dev.jsonl'}"))
    return path


def count_engines() -> int:
    return sum(isinstance(thing, TransformersEngine) for thing in gc.get_objects())


@pytest.mark.slow
def test_a_study_runs_from_warm_start_to_page(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    arguments = ["study", str(study), "-o", str(out), "--seeds", "0,1", "--set", "scale.steps=1"]
    assert main([*arguments, "--dry-run", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert len(planned["jobs"]) == 2 * (3 + 2 * 2 * 2)  # seeds; trainings; rows, levels, extractor and reader
    assert planned["missing"] == {"FilCo": "no package"}
    gc.collect()
    engines = count_engines()
    assert main([*arguments, "--json"]) == 0
    assert count_engines() <= engines, "a job's engine was not freed before the next job"
    result = json.loads(capsys.readouterr().out)
    for row in result["rows"][:2]:
        assert [(f["noise"], f["measure"]) for f in row["figures"]] == [
            (0, "em"),
            (0, "f1"),
            (2, "em"),
            (2, "f1"),
        ]
        assert all(f["n"] == 3 and len(f["seeds"]) == 2 for f in row["figures"])
    assert {"reward/total", "reward/answer_evidence"} == set(result["rows"][1]["curves"])
    assert result["rows"][1]["last"]["rollouts/actions"] == 1.0
    assert result["rows"][1]["published"]
    assert {d["what"] for d in result["differs"]} >= {"model", "questions", "retriever"}
    assert [o["n"] for o in result["overlap"]] == [3, 3]
    page = (out / "mine-noise-cpu.html").read_text()
    assert "FilCo: no package." in page
    assert page.count("<svg") >= 6
    assert [len(s["values"]) for s in result["rows"][0]["spread"]] == [3] * 2
    # what is done is not done again
    assert main(arguments) == 0
    assert capsys.readouterr().err.count("done before") == len(planned["jobs"])


def test_a_page_of_what_has_been_run_needs_no_run(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["study", str(study), "-o", str(tmp_path / "out"), "--page"]) == 0
    result = json.loads((tmp_path / "out" / "mine-noise-cpu.json").read_text())
    assert all(f["value"] is None for row in result["rows"] for f in row["figures"])


def test_a_failed_job_ends_neither_the_study_nor_its_page(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "train.jsonl").write_text("")
    assert main(["study", str(study), "-o", str(tmp_path / "out")]) == 1
    result = json.loads((tmp_path / "out" / "mine-noise-cpu.json").read_text())
    assert any("no questions" in reason for reason in result["failed"].values())
    assert any("which failed" in reason for reason in result["failed"].values())
