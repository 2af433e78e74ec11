"""The list of studies: complete, made of recipes that exist, and next to figures that were published."""

import re
from pathlib import Path

import pytest

from sleuth.cli import main
from sleuth.errors import ConfigError
from sleuth.evaluation.published import printed
from sleuth.recipes import load_recipe
from sleuth.studies import STUDIES, all_studies, load_study
from sleuth.studies.outcome import outcome
from sleuth.studies.plan import Place, plan, training_tokens
from sleuth.studies.study import SCALES, Row, Scale, Study, System

ALL = all_studies()
PRINTED = {
    "eval-rar": {"table": range(1, 5), "figure": range(1, 4)},
    "evinote-rag": {"table": range(1, 6), "figure": range(1, 10)},
    "arena": {"table": range(1, 12), "figure": range(1, 5)},
    "eviomni": {"table": range(1, 11), "figure": range(1, 8)},
    "evo-rag": {"table": range(1, 8), "figure": range(1, 5)},
}
"""Tables and figures of the papers."""


def test_every_table_and_figure_is_listed_once():
    names = [study.name for study in ALL]
    assert len(set(names)) == len(names)
    wanted = {
        f"{paper}/{kind}-{n}"
        for paper, kinds in PRINTED.items()
        for kind, numbers in kinds.items()
        for n in numbers
    }
    assert wanted <= set(names)
    assert set(PRINTED) == set(STUDIES)


@pytest.mark.parametrize("study", ALL, ids=lambda study: study.name)
def test_a_study_runs_or_says_in_one_line_what_it_lacks(study: Study):
    assert study.title
    runs = study.runs("paper")
    assert bool(runs) != bool(study.lacks)
    assert "\n" not in study.lacks
    assert not runs or (study.data.get("paper") and study.measures) or study.curves or study.last
    assert len({study.label(row) for row in study.rows}) == len(study.rows)
    for row in study.rows:
        assert row.paper or row.lacks or row.cpu
        for system in filter(None, (row.paper, row.cpu)):
            for name in filter(None, (system.recipe, system.evaluated, system.reader, system.reads)):
                load_recipe(name).with_settings(system.settings)


@pytest.mark.parametrize("study", [s for s in ALL if s.source[0] and s.rows], ids=lambda study: study.name)
def test_every_row_has_its_published_figures(study: Study):
    own = printed(*study.source)
    for row in study.rows:
        found = [f for f in own if f.method == (row.published or row.label) and row.model in ("", f.model)]
        assert found, f"{row.label}: {sorted({(f.method, f.model) for f in own})}"


@pytest.mark.parametrize("study", [s for s in ALL if s.source[0]], ids=lambda study: study.name)
def test_every_published_figure_is_shown_once(study: Study, tmp_path: Path):
    result = outcome(study, Place(tmp_path, "paper"))
    for row in result["rows"]:
        keys = [(f["dataset"], f["measure"]) for f in row["published"]]
        assert len(set(keys)) == len(keys), row["label"]
    shown = {str(f) for row in result["rows"] for f in row["published"]}
    assert len(shown | {str(f) for f in result["also_published"]}) == len(printed(*study.source))


def test_the_figures_of_the_test_split_stand_next_to_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    result = outcome(load_study("eviomni/table-3"), Place(tmp_path, "paper"))
    found = {(f["dataset"], f["measure"]): (f["split"], f["value"]) for f in result["rows"][0]["published"]}
    assert found == {
        ("nq", "recall_at_5"): ("test", 0.7407),
        ("nq", "ndcg_at_5"): ("test", 0.6308),
        ("triviaqa", "recall_at_5"): ("test", 0.7777),
        ("triviaqa", "ndcg_at_5"): ("test", 0.7035),
        ("hotpotqa", "recall_at_5"): ("dev", 0.2845),
        ("hotpotqa", "ndcg_at_5"): ("dev", 0.2239),
    }
    assert {f["split"] for f in result["also_published"]} == {"dev", "train"}
    assert main(["study", "eviomni/table-3", "--page", "-o", str(tmp_path)]) == 0
    for printed_by_us in (capsys.readouterr().out, (tmp_path / "eviomni-table-3-cpu.html").read_text()):
        ours, others = printed_by_us.split("Also published")
        assert "74.1" in ours
        assert "78.7" not in ours
        assert "78.7" in others


@pytest.mark.parametrize("scale", SCALES)
def test_cpu_studies_use_cpu_recipes_and_paper_studies_those_of_the_paper(scale: str):
    for study in ALL:
        for row in study.runs(scale):  # type: ignore[arg-type]
            recipe = load_recipe(row.at(scale).recipe)  # type: ignore[arg-type, union-attr]
            assert (recipe.variant == "cpu") == (scale == "cpu")


def test_a_plan_trains_once_what_rows_share_and_orders_extractor_before_reader(tmp_path: Path):
    study = load_study("eviomni/figure-6")
    jobs = plan(study, Place(tmp_path, "cpu"))
    folders = [job.folder for job in jobs]
    assert len(set(folders)) == len(folders)
    assert [job.recipe.name for job in jobs if job.kind == "train"].count("eviomni/reader-cpu") == 1
    for place, job in enumerate(jobs):
        needed = [folder for folder in (job.weights, job.evidence) if folder]
        assert set(needed) <= set(folders[:place])
    read = [job for job in jobs if job.evidence]
    assert len(read) == 2 * 5
    assert all(job.weights and job.weights.parent.name == "eviomni-reader-cpu" for job in read)


def test_one_generator_reads_every_row_of_eviomni_s_table_4(tmp_path: Path):
    jobs = plan(load_study("eviomni/table-4"), Place(tmp_path, "paper"))
    assert {j.recipe.name for j in jobs if j.kind == "train"} == {
        "eviomni/paper",
        "eviomni/reader",
        "eviomni/zero",
    }
    (compressed,) = [
        j for j in jobs if j.recipe.name == "eviomni/llmlingua-2" and "1.5B" in j.row and j.dataset == "nq"
    ]
    assert compressed.weights
    assert compressed.weights.parent.name == "eviomni-reader"


@pytest.mark.parametrize("scale", SCALES)
def test_studies_share_an_evaluation_only_if_it_is_the_same(scale: Scale, tmp_path: Path):
    found: dict[Path, tuple[object, ...]] = {}
    for study in ALL:
        for job in plan(study, Place(tmp_path, scale)):
            what = (job.kind, job.recipe, job.weights, job.level, job.evidence)
            assert found.setdefault(job.folder, what) == what, study.name


@pytest.mark.parametrize("scale", SCALES)
def test_every_plan_of_the_papers_is_an_upper_bound(scale: Scale, tmp_path: Path):
    assert all(job.bounded for study in ALL for job in plan(study, Place(tmp_path, scale)))


def test_every_question_of_a_public_set_is_charged(tmp_path: Path):
    jobs = plan(load_study("eval-rar/table-1"), Place(tmp_path, "paper"))
    direct = {job.dataset: sum(job.tokens) for job in jobs if job.recipe.name == "direct/paper"}
    sizes = {f.dataset: f.n for f in printed("Eval-RAR", "Table 1") if f.n}
    assert {name: tokens / direct["bamboogle"] for name, tokens in direct.items()} == {
        name: n / 125 for name, n in sizes.items()
    }


def test_data_of_unknown_size_have_no_bound(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "mine.py"
    path.write_text(
        "from sleuth.studies.study import Row, Study, System\n"
        "ROWS = (Row('a', cpu=System('rag/cpu', ('scale.steps=0', 'scale.eval_questions=0'))),)\n"
        "STUDY = Study('mine/one', 'Mine', ROWS, {'cpu': {'f': 'jsonl:mine.jsonl', 'g': '5 of jsonl:mine.jsonl'}})\n"
    )
    assert main(["study", str(path), "--dry-run", "--tflops", "1", "-o", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "unknown" in shown
    assert "without 1 on data of unknown size" in shown


def test_dev_questions_are_charged_too():
    recipe = load_recipe("eval-rar/cpu").sized(steps=30, dev_every=20, warm_start_epochs=1)
    none, some = (sum(training_tokens(recipe.sized(dev_questions=n))) for n in (0, 5))
    assert some - none == 5 * 2 * sum(
        training_tokens(recipe.sized(dev_questions=0, steps=0, warm_start_examples=1))
    )


def test_settings_and_seeds_have_folders_of_their_own(tmp_path: Path):
    study = load_study("eval-rar/table-2")
    once = {job.folder for job in plan(study, Place(tmp_path, "cpu"))}
    assert once.isdisjoint(
        {job.folder for job in plan(study, Place(tmp_path, "cpu", settings=("scale.steps=3",)))}
    )
    assert len(plan(study, Place(tmp_path, "cpu", (0, 1)))) == 2 * len(once)


def test_settings_for_all_rows_give_no_training_to_a_row_that_has_none(tmp_path: Path):
    place = Place(tmp_path, "cpu", settings=("scale.steps=3", "scale.warm_start_examples=9"))
    trained = {job.recipe.name: job.recipe.scale for job in plan(load_study("eval-rar/table-1"), place)}
    assert (trained["eval-rar/cpu"].steps, trained["eval-rar/cpu"].warm_start_examples) == (3, 9)
    assert (trained["ircot/cpu"].steps, trained["ircot/cpu"].warm_start_examples) == (0, 0)


def test_published_and_robustness_are_part_of_it(capsys: pytest.CaptureFixture[str]):
    assert main(["study", "published", "--dataset", "bamboogle", "--method", "Eval-RAR"]) == 0
    assert "Eval-RAR-Base" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["study", "robustness", "--help"])
    assert "--kind" in capsys.readouterr().out


def test_a_user_s_own_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "mine.py"
    path.write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n"
        "from sleuth.studies.study import Row, Study, System\n"
        "@dataclass\n"
        "class Mine:\n"
        "    of: ClassVar[int] = 1\n"
        "STUDY = Study('mine/one', 'Mine', (Row('a', cpu=System('direct/cpu')),), {'cpu': {'f': 'factbook:dev'}})\n"
    )
    assert load_study(str(path)) == Study(
        "mine/one", "Mine", (Row("a", cpu=System("direct/cpu")),), {"cpu": {"f": "factbook:dev"}}
    )
    assert main(["study", str(path), "--dry-run", "--tflops", "1"]) == 0
    printed = capsys.readouterr().out
    assert "left: 1 of 1 jobs" in printed


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("eval-rar/table-22", "did you mean 'eval-rar/table-2'"),
        ("nowhere.py", "no study file"),
        ("arena/table-1 ", "unknown study"),
    ],
)
def test_an_unknown_study(spec: str, message: str):
    with pytest.raises(ConfigError, match=message):
        load_study(spec)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["arena/figure-1"], "arena/figure-1 cannot be run: a drawing"),
        (["arena/table-4", "--scale", "cpu"], "no row has a recipe at cpu scale"),
        *((["arena/table-6", "--seeds", seeds], "--seeds must be") for seeds in ("x", "0,,1", "²", "0,0")),
        (["arena/table-6", "--tflops", "-1"], "--tflops must not be negative"),
    ],
)
def test_one_line_for_what_cannot_run(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["study", *arguments, "-o", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_the_list_names_rows_and_costs(capsys: pytest.CaptureFixture[str]):
    assert main(["study"]) == 0
    printed = capsys.readouterr().out
    assert all(study.name in printed for study in ALL)
    assert re.search(r"2 of 4, \d", printed)
