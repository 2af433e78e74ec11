"""Provenance: stamps by recorded facts, and runs that differ by seed only."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sleuth.errors import DataError
from sleuth.evaluation.provenance import Run, run_of, stage_of, stamps
from sleuth.evaluation.result import Leaks, load_evaluation


def _run(**scale: Any) -> Run:
    return Run(Path("r"), {"name": "r", "scale": scale})


@pytest.fixture(scope="module")
def evaluation(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("run") / "eval-search-r1-20260102-030405"
    return world.run(folder, world.questions(2), world.knows(lambda _: True), source="jsonl:dev.jsonl")


def test_nothing_recorded_means_nothing_stamped(evaluation: Any) -> None:
    assert evaluation.source == load_evaluation(evaluation.folder).source == "jsonl:dev.jsonl"
    assert stamps(evaluation, Run()) == ()
    assert stamps(evaluation, _run(train_data="jsonl:train.jsonl", eval_data="jsonl:dev.jsonl")) == ()


def test_leaks_training_data_and_training_splits_are_stamped(evaluation: Any) -> None:
    leaky = replace(evaluation, leaks=Leaks(checked=True, count=2, ids=("a", "b")))
    assert stamps(leaky, Run()) == ("TRAINED ON: 2 of its 2 questions are among the training questions",)
    run = _run(train_data="jsonl:a.jsonl+jsonl:dev.jsonl")
    assert stamps(evaluation, run) == ("TRAINED ON: jsonl:dev.jsonl is its training data",)
    assert stamps(replace(evaluation, leaks=Leaks(checked=True)), run) == ()  # checked, and there is none
    asked = replace(evaluation, source="factbook:dev+hotpotqa:train.json")
    assert stamps(asked, Run()) == ("TRAINING SPLIT: hotpotqa:train.json",)


@pytest.mark.parametrize(("every", "stamped"), [(5, True), ("5", True), (0, False), ("x", False)])
def test_questions_evaluated_during_training_are_stamped(evaluation: Any, every: object, stamped: bool):
    run = _run(train_data="factbook:train", eval_data="jsonl:dev.jsonl", eval_every=every)
    expected = "SELECTED ON: jsonl:dev.jsonl was evaluated every 5 steps of its training"
    assert stamps(evaluation, run) == ((expected,) if stamped else ())
    assert stamps(replace(evaluation, source="jsonl:test.jsonl"), run) == ()


def test_the_run_is_the_folder_around_the_evaluation(evaluation: Any) -> None:
    assert stage_of(evaluation) == "eval-search-r1"
    assert run_of(evaluation) == Run()
    assert Run().metrics() == []
    assert Run().identity == ""
    path = evaluation.folder.parent / "recipe.json"
    path.write_text(json.dumps({"name": "a", "scale": {"seed": 3, "lr": 1}}), encoding="utf-8")
    run = run_of(evaluation)
    assert run.seed == 3
    (evaluation.folder.parent / "metrics.jsonl").write_text('{"step":1}\n{"step":2}\n{"st', encoding="utf-8")
    assert run.metrics() == [{"step": 1}, {"step": 2}]
    path.write_text("{", encoding="utf-8")
    with pytest.raises(DataError, match=r"recipe\.json"):
        run_of(evaluation)
    path.unlink()


def test_identity_ignores_only_the_seed(tmp_path: Path) -> None:
    first, *others = [
        Run(tmp_path, {"name": "a", "scale": {"seed": seed, "lr": lr}}).identity
        for seed, lr in ((0, 1), (1, 1), (0, 2))
    ]
    assert [other == first for other in others] == [True, False]


def test_a_user_s_own_recipe_file(tmp_path: Path) -> None:
    def run(folder: str, code: str, *settings: str) -> Run:
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "recipe.py").write_text(code, encoding="utf-8")
        return Run(tmp_path / folder, {"settings": list(settings)})

    first, second = run("a", "x = 1", "scale.seed=1"), run("b", "x = 1", "scale.seed=2")
    assert (first.seed, second.seed) == (1, 2)
    assert first.identity == second.identity
    assert run("c", "x = 2", "scale.seed=2").identity != first.identity
    assert run("d", "x = 1", "scale.seed=2", "scale.lr=1").identity != first.identity
    assert run("e", "x = 1").seed is None
