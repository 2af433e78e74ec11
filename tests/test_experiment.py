"""The composition as a whole, with a tiny real model: stages, records, interruption, continuation."""

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sleuth.demo import Demo
from sleuth.errors import BusyError, ConfigError, DataError, EngineError, OtherRunError
from sleuth.evaluation.runner import Progress
from sleuth.experiment import Experiment
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from support import toy
from support.towns import questions, small, write_towns
from support.toy import rows


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> dict[str, Any]:
    """An index, a question file and a recipe small enough to train in seconds."""
    folder = tmp_path_factory.mktemp("world")
    write_towns(folder, train=questions()[:5], dev=questions()[5:])
    sizes = {"warm_start_examples": 4, "rollout_batch": 4, "save_every": 1}
    recipe = small(load_recipe("search-r1/cpu"), tiny_model, folder, **sizes)
    return {"recipe": recipe, "index": str(folder / "index")}


def experiment(world: dict[str, Any], folder: Path, recipe: Recipe | None = None) -> Experiment:
    return Experiment(recipe or world["recipe"], folder, index=world["index"], say=lambda _: None)


def test_a_run_leaves_everything_it_made(world: dict[str, Any], tmp_path: Path) -> None:
    summary = experiment(world, tmp_path).run()
    assert (summary["steps"], summary["stopped"], summary["n"]) == (2, "done", 3)
    phases = [("warm_start", 1), ("warm_start", 2), ("train", 1), ("train", 2)]
    assert [(row["phase"], row["step"]) for row in rows(tmp_path)] == phases
    assert load_recipe(str(tmp_path)) == world["recipe"]
    assert (tmp_path / "model" / "config.json").is_file()
    assert (tmp_path / "eval" / "result.json").is_file()


def test_demonstrations_of_several_sources_are_a_mixture(world: dict[str, Any], tmp_path: Path) -> None:
    for name, part in (("a", questions()[:4]), ("b", questions()[4:8])):
        rows = [json.dumps(row | {"dataset": name}) for row in part]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    spec = f"jsonl:{tmp_path / 'a.jsonl'} + jsonl:{tmp_path / 'b.jsonl'}"
    recipe = world["recipe"].sized(train_data=spec, warm_start_examples=4)
    shown = experiment(world, tmp_path / "run", recipe).demonstrations()
    assert {t.question.dataset for t in shown} == {"a", "b"}


def test_a_curriculum_is_measured_by_its_last_stage(world: dict[str, Any], tmp_path: Path) -> None:
    evo = load_recipe("evo-rag/cpu")
    recipe = world["recipe"].but(reward=evo.reward)
    evaluation = experiment(world, tmp_path, recipe).evaluate("eval")
    assert evaluation.settings["reward"]["curriculum"]["stage"] == 2


def test_the_warm_start_trains_all_layers_and_reinforcement_the_upper_ones(
    world: dict[str, Any], tmp_path: Path
) -> None:
    run = experiment(world, tmp_path, world["recipe"].sized(frozen_layers=0.5))
    run.warm_start()
    assert run.policy.trainable().keys() == dict(run.policy.model.named_parameters()).keys()
    before = {name: p.detach().clone() for name, p in run.policy.model.named_parameters()}
    run.reinforce()
    run.close()
    frozen = before.keys() - run.policy.trainable().keys()
    assert any("layers.0." in name for name in frozen)
    assert not any("layers.1." in name for name in frozen)
    assert all(run.policy.model.get_parameter(name).equal(before[name]) for name in frozen)
    saved = run.save_model()
    assert {name for name, _ in run.policy.merged()} == before.keys()
    assert (saved / "config.json").is_file()


def test_adapters_start_from_the_seed_of_the_run(world: dict[str, Any], tmp_path: Path) -> None:
    def start(seed: int) -> list[float]:
        policy = experiment(world, tmp_path, world["recipe"].sized(lora_rank=2, seed=seed)).policy
        return [value for p in policy.trainable_parameters() for value in p.flatten().tolist()]

    assert start(1) == start(1) != start(2)


def test_evaluations_while_training_join_the_rows(world: dict[str, Any], tmp_path: Path) -> None:
    experiment(world, tmp_path, world["recipe"].sized(eval_every=1)).run()
    assert (tmp_path / "eval-step-000000" / "result.json").is_file()  # before the first step
    assert (tmp_path / "eval-step-000001" / "result.json").is_file()
    assert not (tmp_path / "eval-step-000002").exists()  # the last one is "eval"
    steps = [row for row in rows(tmp_path) if row["phase"] == "train"]
    final = json.loads((tmp_path / "eval" / "result.json").read_text())
    assert [row["evaluation/em"] for row in steps] == [0.0, final["metrics"]["em"]["value"]]


def test_evaluations_of_a_later_stage_count_the_steps_before_it(
    world: dict[str, Any], tmp_path: Path
) -> None:
    recipe = world["recipe"].but(reward=load_recipe("evo-rag/cpu").reward)
    assert experiment(world, tmp_path, recipe.sized(eval_every=1, max_steps=5)).run()["steps"] == 4
    names = sorted(folder.name for folder in tmp_path.glob("eval*"))
    assert names == ["eval", *(f"eval-step-00000{step}" for step in range(4))]


def test_the_evaluation_of_the_last_step_makes_room_for_that_of_the_best_weights(
    world: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = iter([0.9, 0.5, 0.1])
    monkeypatch.setattr("sleuth.training.loop.dev_em", lambda *_: next(scores))
    monkeypatch.setattr(Experiment, "save_recipe", lambda _: None)
    recipe = world["recipe"].sized(eval_every=1, dev_questions=1, lr=0.01, lr_warmup=0.0)
    recipe = recipe.but(reward=toy.FirstLetter(value=lambda t: float(t.sample)))
    assert experiment(world, tmp_path, recipe).run()["stopped"] == "done"
    names = ("eval-step-000000", "eval", "eval-step-000002")
    used = [json.loads((tmp_path / name / "settings.json").read_text())["weights"] for name in names]
    assert used[0] == used[1] != used[2]
    before = (tmp_path / "eval" / "questions.jsonl").read_bytes()
    assert experiment(world, tmp_path, recipe).run()["stopped"] == "done"
    assert (tmp_path / "eval" / "questions.jsonl").read_bytes() == before


def test_a_run_of_more_steps_keeps_the_evaluation_of_fewer(
    world: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experiment, "save_recipe", lambda _: None)
    for steps, every in ((2, 0), (3, 0), (4, 1)):
        recipe = world["recipe"].sized(steps=steps, eval_every=every, dev_questions=0, lr=0.01, lr_warmup=0.0)
        recipe = recipe.but(reward=toy.FirstLetter(value=lambda t: float(t.sample)))
        assert experiment(world, tmp_path, recipe).run()["steps"] == steps
    folders = [path.parent for path in tmp_path.glob("eval*/result.json")]
    used = {json.loads((folder / "settings.json").read_text())["weights"] for folder in folders}
    # Of 2, 3 and 4 steps, and of none: where a run that evaluates while it trains begins.
    assert (len(folders), len(used)) == (4, 4)


def test_dev_questions_are_not_demonstrated(world: dict[str, Any], tmp_path: Path) -> None:
    run = experiment(world, tmp_path, world["recipe"].sized(dev_questions=1, warm_start_examples=5))
    (dev,) = run.dev_questions
    shown = [one.question.id for one in run.demonstrations()]
    assert (dev.id in shown, len(shown)) == (False, len(run.train_questions) - 1)


def test_a_run_stopped_inside_an_evaluation_continues_after_the_step(
    world: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = world["recipe"].sized(eval_every=1)
    line = Progress.line

    def asked_to_stop(progress: Progress) -> str:
        if (tmp_path / "eval-step-000000" / "result.json").exists():
            os.kill(os.getpid(), signal.SIGTERM)
        return line(progress)

    monkeypatch.setattr(Progress, "line", asked_to_stop)
    with pytest.raises(KeyboardInterrupt):
        experiment(world, tmp_path, recipe).run()
    monkeypatch.setattr(Progress, "line", line)
    assert [row["step"] for row in rows(tmp_path) if row["phase"] == "train"] == [1]
    assert experiment(world, tmp_path, recipe).run()["stopped"] == "done"
    assert [row["step"] for row in rows(tmp_path) if row["phase"] == "train"] == [1, 2]


def figures(details: dict[str, Any]) -> dict[str, Any]:
    """Everything but the time taken."""
    stages = {
        name: {key: value for key, value in stage.items() if key != "seconds"}
        for name, stage in details["stages"].items()
    }
    return details | {"stages": stages}


def test_the_demo_has_three_stages_and_is_not_run_twice(world: dict[str, Any], tmp_path: Path) -> None:
    story = Demo(experiment(world, tmp_path), seconds=1e9).run()
    assert [name for name, _ in story.rows] == ["untrained", "after warm start", "after GRPO"]
    assert story.n == 3
    result = json.loads((tmp_path / "result.json").read_text())
    assert set(result["stages"]) == {"untrained", "after warm start", "after GRPO"}
    assert result["training"] == json.loads((tmp_path / "recipe.json").read_text())
    assert result["training"]["scale"]["seed"] == world["recipe"].scale.seed
    assert "<html" in (tmp_path / "report.html").read_text()
    before = (tmp_path / "metrics.jsonl").read_bytes()
    again = Demo(experiment(world, tmp_path), seconds=1e9).run()
    assert figures(again.details) == figures(story.details)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before


def test_the_demo_names_the_steps_that_did_not_fit(
    world: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reinforce = Experiment.reinforce
    monkeypatch.setattr(Experiment, "reinforce", lambda self, *_: reinforce(self, 0.001))
    recipe = world["recipe"].sized(steps=9)
    story = Demo(experiment(world, tmp_path, recipe), seconds=1e9).run()
    assert any("of 9 GRPO steps did not fit" in note for note in story.notes), story.notes


def test_the_demo_misses_no_step_of_a_run_with_two_stages(world: dict[str, Any], tmp_path: Path) -> None:
    reward = load_recipe("evo-rag/cpu").reward
    steps = world["recipe"].scale.max_steps
    recipe = world["recipe"].but(
        reward=replace(reward, curriculum=replace(reward.curriculum, max_steps=steps))
    )
    story = Demo(experiment(world, tmp_path, recipe), seconds=1e9).run()
    assert not any("did not fit" in note for note in story.notes), story.notes


def test_the_demo_asks_the_untrained_model_fewer_questions(
    world: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sleuth.demo.UNTRAINED", 2)
    story = Demo(experiment(world, tmp_path), seconds=1e9).run()
    assert [stage["n"] for stage in story.details["stages"].values()] == [2, 3, 3]
    assert any("first 2 of the 3 questions" in note for note in story.notes), story.notes
    again = Demo(experiment(world, tmp_path), seconds=1e-3).run()
    assert figures(again.details) == figures(story.details)


def test_dev_questions_choose_the_weights_of_a_warm_start_that_is_the_whole_training(
    world: dict[str, Any], tmp_path: Path
) -> None:
    recipe = world["recipe"].sized(steps=0, dev_questions=1, dev_every=1)
    run = experiment(world, tmp_path, recipe)
    (dev,) = run.dev_questions
    shown = {t.question.id for t in run.demonstrations()}
    assert len(shown) == 4
    assert dev.id not in shown
    run.run()
    assert all("dev/em" in row for row in rows(tmp_path))
    assert not any("dev/best_step" in row for row in rows(tmp_path))
    best = tmp_path / "checkpoints" / "warm_start" / "best" / "scores.json"
    assert [step for step, _ in json.loads(best.read_text())] == [1, 2]


def test_transcripts_of_dev_questions_are_not_learnt(world: dict[str, Any], tmp_path: Path) -> None:
    recipe = world["recipe"].sized(steps=0, dev_questions=1)
    run = experiment(world, tmp_path / "run", recipe)
    names = [q.text for q in run.train_questions]
    turns = [{"by": "model", "text": "<answer>x</answer>"}]
    lessons = [{"question": text, "answers": ["x"], "segments": turns} for text in names]
    run.lessons = tmp_path / "lessons.jsonl"
    run.lessons.write_text("\n".join(map(json.dumps, lessons)))
    assert {t.question.text for t in run.demonstrations()} == set(names) - {run.dev_questions[0].text}


def test_a_stage_whose_evaluation_was_begun_is_not_trained_further(
    world: dict[str, Any], tmp_path: Path
) -> None:
    """Its weights would no longer be those of the episodes already on disk."""
    recipe = world["recipe"].sized(warm_start_epochs=3)
    first = experiment(world, tmp_path, recipe)
    first.save_recipe()
    first.evaluate("eval-base")
    first.warm_start(deadline_s=0.001)
    first.close()
    warm = [row["step"] for row in rows(tmp_path) if row["phase"] == "warm_start"]
    first.evaluate("eval-warm-start")
    story = Demo(experiment(world, tmp_path, recipe), seconds=1e9).run()
    assert [row["step"] for row in rows(tmp_path) if row["phase"] == "warm_start"] == warm
    assert len(warm) < 6
    assert story.n == 3


def test_a_slow_machine_evaluates_fewer_questions_and_warm_starts_as_long(
    world: dict[str, Any], tmp_path: Path
) -> None:
    demo = Demo(experiment(world, tmp_path), seconds=1200)
    demo.experiment.eval_questions = demo.experiment.eval_questions[:1] * 250
    assert [demo._questions(seconds) for seconds in (0.4, 1.0, 2.0)] == [250, 115, 100]
    assert demo._warm_start_s() == pytest.approx(0.75 * 1300, abs=1)


def test_a_slow_machine_measures_fewer_candidates(world: dict[str, Any], tmp_path: Path) -> None:
    scale = {"candidates": 80, "batch": 8, "measure": True}
    demo = Demo(experiment(world, tmp_path, world["recipe"].sized(**scale)), seconds=1200)
    size = demo.experiment.recipe.algorithm.group_size
    per_question = [240 / size / fit for fit in (125, 37, 4)]
    assert [demo._candidates(seconds * 0.999) for seconds in per_question] == [80, 37, 8]
    unmeasured = replace(
        demo, experiment=experiment(world, tmp_path, world["recipe"].sized(**scale | {"measure": False}))
    )
    assert unmeasured._candidates(per_question[-1]) == 80
    (demo.experiment.folder / "selection.json").write_text('{"questions": 40}')
    assert demo._candidates(per_question[0]) == 40


def test_an_evaluation_of_other_weights_is_not_continued(world: dict[str, Any], tmp_path: Path) -> None:
    first = experiment(world, tmp_path)
    first.evaluate("eval")
    first.warm_start()
    with pytest.raises(ConfigError, match="differs in weights"):
        first.evaluate("eval")
    first.close()


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"eval_data": "jsonl:nowhere.jsonl"}, DataError, "nowhere.jsonl"),
        ({"train_data": "nothing:x"}, ConfigError, "nothing"),
    ],
)
def test_bad_data_is_reported_before_a_model_is_loaded(
    world: dict[str, Any], tmp_path: Path, change: dict[str, str], error: type[Exception], words: str
) -> None:
    broken = experiment(world, tmp_path, world["recipe"].sized(**change))
    with pytest.raises(error, match=words):
        broken.run()
    assert "policy" not in broken.__dict__


def test_too_little_memory_is_reported_before_a_model_is_loaded(
    world: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sleuth.training.memory.free_ram", lambda: 10**6)
    run = experiment(world, tmp_path)
    with pytest.raises(
        ConfigError, match=r"training needs about .* GB, and cpu has 0\.0 GB free: even scale\."
    ):
        run.run()
    assert "policy" not in vars(run)


@pytest.mark.parametrize(
    ("module", "error", "words"),
    [
        (None, EngineError, "vLLM cannot be imported"),
        (SimpleNamespace(__version__="0.8.5"), ConfigError, "vLLM 0.8.5 is installed, but Sleuth runs on"),
    ],
)
def test_an_unsuitable_vllm_is_reported_before_a_model_is_loaded(
    world: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    error: type[Exception],
    words: str,
) -> None:
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setenv("VLLM_ENABLE_V1_MULTIPROCESSING", "0")  # set by the check; put back after the test
    run = experiment(world, tmp_path, world["recipe"].sized(engine="vllm"))
    with pytest.raises(error, match=words):
        run.run()
    assert "policy" not in vars(run)


def test_a_folder_of_another_run_keeps_its_recipe(world: dict[str, Any], tmp_path: Path) -> None:
    experiment(world, tmp_path).run(evaluate=False)
    with pytest.raises(OtherRunError, match="seed 0, not 1"):
        experiment(world, tmp_path, world["recipe"].sized(seed=1)).run()
    assert load_recipe(str(tmp_path)) == world["recipe"]
    holder = experiment(world, tmp_path)
    _ = holder.log  # another process writes here
    with pytest.raises(BusyError):
        experiment(world, tmp_path, world["recipe"].sized(lr=1.0)).run()
    holder.close()
    assert load_recipe(str(tmp_path)) == world["recipe"]


def test_further_steps_of_a_first_stage_are_not_lost_in_the_second(
    world: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Experiment, "save_recipe", lambda _: None)
    recipe = world["recipe"].sized(steps=1, dev_questions=0, lr=0.01, lr_warmup=0.0)
    recipe = recipe.but(reward=Staged(value=lambda t: float(t.sample)))
    experiment(world, tmp_path, recipe).run(evaluate=False)
    with pytest.raises(OtherRunError, match="steps 1, not 2"):
        experiment(world, tmp_path, recipe.sized(steps=2)).run(evaluate=False)
    assert [row["step"] for row in rows(tmp_path) if row["phase"] == "stage_1"] == [1]
    assert experiment(world, tmp_path, recipe).run(evaluate=False)["steps"] == 2


class Staged(toy.FirstLetter):
    """A curriculum of two equal stages."""

    def stages(self) -> list[toy.FirstLetter]:
        return [self, self]


def test_settings_that_cannot_train_are_refused_before_the_warm_start(
    world: dict[str, Any], tmp_path: Path
) -> None:
    recipe = world["recipe"].but(reward=load_recipe("evo-rag/cpu").reward).sized(max_steps=7)
    with pytest.raises(ConfigError, match="episodes have 7"):
        experiment(world, tmp_path, recipe).run()
    assert not (tmp_path / "checkpoints").exists()
