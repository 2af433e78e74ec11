"""evaluate on real episodes: values, files, faults, kills, settings and leaks."""

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines.base import Engine, Request, Sampling
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.errors import BusyError, ConfigError, DataError, EngineError, JudgeError
from sleuth.evaluation.records import Record
from sleuth.evaluation.result import load_evaluation, summarise
from sleuth.evaluation.runner import Progress
from sleuth.evaluation.settings import fingerprint
from sleuth.lock import FolderLock
from sleuth.rewards.answer import AnswerReward
from sleuth.rewards.base import Reward
from sleuth.types import Exchange, Question, Score, Trajectory


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_figures_and_files(world: Any, tmp_path: Path) -> None:
    result = world.run(tmp_path, world.questions(10), world.knows(lambda i: i < 4))
    assert (result.n, result.faults, result.endings) == (10, 0, {"answered": 10})
    assert (result["em"].value, result["em"].n) == (pytest.approx(0.4), 10)
    assert result["em"].low is not None
    expected = {"valid_format": 1.0, "searches": 1.0, "steps": 2.0, "gold_recall": 0.5, "over_refusal": 0.0}
    assert {name: result[name].value for name in expected} == expected
    assert (result["refusal_recall"].value, result["refusal_recall"].left_out) == (None, 10)
    lines = _lines(tmp_path / "questions.jsonl")
    record = next(line for line in lines if line["id"] == "q7")
    wanted = {"prediction": "nonsense", "golds": ["answer 7"], "em": 0.0, "f1": 0.0, "valid_format": 1.0}
    assert (wanted | {"ending": "answered", "fault": ""}).items() <= record.items()
    assert [t.question.id for t in result.trajectories()] == [line["id"] for line in lines]


def test_the_result_file_names_everything_it_depends_on(world: Any, tmp_path: Path) -> None:
    engine = world.knows(lambda _: True, name="tiny")
    result = world.run(tmp_path, world.questions(2), engine, limits=Limits(top_k=2))
    saved = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    settings = saved["settings"]
    rules = {"name": "squad", "normaliser": "squad", "source": "SQuAD evaluate-v1.1.py"}
    expected = {"model": "tiny", "dataset": "squad", "rules": {"squad": rules}}
    expected["retriever"] = {"retriever": "shelf", "version": "1"}
    assert expected.items() <= settings.items()
    assert settings["decoding"]["method"] == "greedy"
    assert settings["limits"]["top_k"] == 2
    assert settings["protocol"]["part"] == "SearchTags"
    assert settings["questions"]["n"] == 2
    assert {"python", "sleuth", "numpy"} <= set(saved["versions"])
    assert saved["metrics"]["em"] == {"value": 1.0, "low": 1.0, "high": 1.0, "n": 2, "left_out": 0}
    assert saved["leaks"] == {"checked": False, "count": 0, "ids": []}
    assert load_evaluation(tmp_path) == result


def test_width_changes_nothing(world: Any, tmp_path: Path) -> None:
    asked, engine = world.questions(9), world.knows(lambda i: i % 2 == 0)
    first, *others = (world.run(tmp_path / str(w), asked, engine, width=w) for w in (1, 4, 64))
    assert all(other.metrics == first.metrics for other in others)


def test_a_failed_episode_is_wrong_and_reported(world: Any, tmp_path: Path) -> None:
    engine = ScriptedEngine(["<search>broken thing</search>"])
    result = world.run(tmp_path, world.questions(1), engine, reward=AnswerReward())
    assert (result.n, result.faults) == (1, 1)
    assert result.fault_examples == ("q0: retrieval failed: index gone",)
    assert (result["em"].value, result["em"].n) == (0.0, 1)
    assert result["valid_format"].value == 0.0
    # A reward is a judgement of the policy: there is none of an outside failure.
    assert (result["reward"].value, result["reward"].left_out) == (None, 1)


def _run_until_killed(world: Any, folder: Path, asked: list[Question], count: int) -> None:
    """Evaluate in a process that is killed, by a signal nobody can catch, when `count` questions are done."""

    def progress(now: Progress) -> None:
        if now.done == count:
            os.kill(os.getpid(), signal.SIGKILL)

    process = multiprocessing.get_context("fork").Process(
        target=world.run,
        args=(folder, asked, world.knows(lambda i: i % 3 == 0)),
        kwargs={"progress": progress, "reward": AnswerReward()},
    )
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


def test_a_killed_evaluation_continues_without_repeating(world: Any, tmp_path: Path) -> None:
    asked, answered = world.questions(50), []
    _run_until_killed(world, tmp_path / "a", asked, 37)
    assert not (tmp_path / "a" / "result.json").exists()
    with pytest.raises(DataError, match="an unfinished evaluation"):
        load_evaluation(tmp_path / "a")
    finished = [line["id"] for line in _lines(tmp_path / "a" / "questions.jsonl")]
    assert len(finished) == 37

    def right(i: int) -> bool:
        answered.append(f"q{i}")
        return i % 3 == 0

    seen: list[Progress] = []
    parts = {"progress": seen.append, "reward": AnswerReward()}
    resumed = world.run(tmp_path / "a", asked, world.knows(right), **parts)
    assert sorted([*answered, *finished]) == sorted(q.id for q in asked)
    assert [now.done for now in seen] == list(range(38, 51))
    whole = world.run(tmp_path / "b", asked, world.knows(right), reward=AnswerReward())
    assert resumed.metrics == whole.metrics
    assert resumed["reward"].n == 50


FILES = ("trajectories.jsonl", "questions.jsonl", "rewards.jsonl")


@pytest.mark.parametrize("file", FILES)
def test_a_line_cut_short_by_a_kill_is_made_good(world: Any, tmp_path: Path, file: str) -> None:
    whole = world.run(tmp_path, world.questions(6), world.knows(lambda i: i < 2), reward=AnswerReward())
    content = (tmp_path / file).read_bytes()
    (tmp_path / "result.json").unlink()
    if file == "trajectories.jsonl":
        # Trajectories are written first, so a kill that cuts one leaves no record of it.
        for later in ("questions.jsonl", "rewards.jsonl"):
            kept = (tmp_path / later).read_bytes().splitlines(keepends=True)[:-1]
            (tmp_path / later).write_bytes(b"".join(kept))
    (tmp_path / file).write_bytes(content[:-20])
    again = world.run(tmp_path, world.questions(6), world.knows(lambda i: i < 2), reward=AnswerReward())
    assert again.metrics == whole.metrics
    # No episode is there twice, and line i is the same episode in all three files.
    assert [len(_lines(tmp_path / name)) for name in FILES] == [6, 6, 6]
    ids = [row["id"] for row in _lines(tmp_path / "questions.jsonl")]
    assert ids == [row["id"] for row in _lines(tmp_path / "rewards.jsonl")]
    assert ids == [t.question.id for t in again.trajectories()]


def test_rewards_are_made_good_over_several_rounds(world: Any, tmp_path: Path) -> None:
    parts = {"width": 1, "reward": AnswerReward()}
    whole = world.run(tmp_path, world.questions(20), world.knows(lambda i: i < 7), **parts)
    (tmp_path / "rewards.jsonl").unlink()
    again = world.run(tmp_path, world.questions(20), world.knows(lambda i: i < 7), **parts)
    assert again.metrics == whole.metrics
    assert again["reward"].n == 20


def test_a_result_is_read_again_and_does_not_outlive_its_records(world: Any, tmp_path: Path) -> None:
    first = world.run(tmp_path, world.questions(3), world.knows(lambda _: True))
    again = world.run(tmp_path, world.questions(3), ScriptedEngine([]))  # any call would raise
    assert again.metrics == first.metrics
    for name in FILES:
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(EngineError):
        world.run(tmp_path, world.questions(3), ScriptedEngine([]))
    with pytest.raises(DataError, match="an unfinished evaluation"):
        load_evaluation(tmp_path)


def test_a_folder_keeps_its_settings(world: Any, tmp_path: Path) -> None:
    world.run(tmp_path, world.questions(3), world.knows(lambda _: True))
    for change, name in (
        ({"retriever": world.shelf(version="2")}, "retriever.version"),
        ({"limits": Limits(max_steps=2)}, "limits.max_steps"),
        ({"sampling": Sampling(temperature=0.7)}, "decoding.method, decoding.temperature"),
        ({"protocol": replace(world.protocol, note="evaluate")}, "protocol.note"),
        ({"reward": AnswerReward()}, "reward"),
    ):
        message = f"holds an evaluation that differs in {name}; choose another folder"
        with pytest.raises(ConfigError, match=message):
            world.run(tmp_path, world.questions(3), world.knows(lambda _: True), **change)
    with pytest.raises(ConfigError, match=r"differs in questions\.n, questions\.sha256"):
        world.run(tmp_path, world.questions(4), world.knows(lambda _: True))
    stray = tmp_path / "stray"
    stray.mkdir()
    (stray / "trajectories.jsonl").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"something else \(settings.json is missing\)"):
        world.run(stray, world.questions(3), world.knows(lambda _: True))


def test_equal_weights_at_another_place_continue_a_folder(
    world: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = world.questions(3)
    world.run(tmp_path, questions, world.knows(lambda _: True, name="here/model"))
    with pytest.raises(ConfigError, match="differs in model;"):  # weights that nobody can see
        world.run(tmp_path, questions, world.knows(lambda _: True, name="there/model"))
    weights = iter(["w", "w", "v"])
    monkeypatch.setattr(ScriptedEngine, "fingerprint", lambda _: next(weights))
    moved = tmp_path / "moved"
    world.run(moved, questions, world.knows(lambda _: True, name="here/model"))
    again = world.run(moved, questions, ScriptedEngine([], name="there/model"))
    assert again.metrics["em"].value == 1.0
    with pytest.raises(ConfigError, match="differs in model, weights"):
        world.run(moved, questions, ScriptedEngine([], name="there/model"))


def test_a_folder_that_is_being_written_is_left_alone(world: Any, tmp_path: Path) -> None:
    lock = FolderLock(tmp_path)
    with pytest.raises(BusyError, match="is being written by process"):
        world.run(tmp_path, world.questions(3), world.knows(lambda _: True))
    lock.release()
    assert world.run(tmp_path, world.questions(3), world.knows(lambda _: True)).n == 3


def test_questions_that_cannot_be_evaluated(world: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no questions to evaluate"):
        world.run(tmp_path, [], world.knows(lambda _: True))
    with pytest.raises(DataError, match="'q1' occurs twice in data set 'squad'"):
        world.run(tmp_path, [*world.questions(3), world.questions(2)[1]], world.knows(lambda _: True))
    two = [*world.questions(2), *world.questions(2, dataset="triviaqa")]
    result = world.run(tmp_path, two, world.knows(lambda _: True))
    assert result.n == 4
    assert result.settings["dataset"] == "squad+triviaqa"
    assert set(result.settings["rules"]) == {"squad", "triviaqa"}


def test_unanswerable_questions(world: Any, tmp_path: Path) -> None:
    asked = [replace(world.questions(2)[0], answers=(), answerable=False), world.questions(2)[1]]
    musique, factbook = ([replace(q, dataset=name) for q in asked] for name in ("musique", "factbook"))
    result = world.run(tmp_path / "a", musique, world.knows(lambda _: True))
    assert (result["em"].value, result["em"].n, result["em"].left_out) == (1.0, 1, 1)
    assert result["refusal_recall"].value == 0.0
    result = world.run(tmp_path / "b", factbook, world.knows(lambda _: True))
    assert (result["em"].value, result["em"].n) == (0.5, 2)


def test_leaks_are_stamped(world: Any, tmp_path: Path) -> None:
    asked = world.questions(4)
    training = [Question("other-id", "WHAT is thing 2", ("x",)), Question("z", "Something else?", ("y",))]
    result = world.run(tmp_path / "a", asked, world.knows(lambda _: True), train_questions=training)
    assert (result.leaks.checked, result.leaks.count, result.leaks.ids) == (True, 1, ("q2",))
    clean = world.run(tmp_path / "b", asked, world.knows(lambda _: True), train_questions=training[1:])
    assert (clean.leaks.checked, clean.leaks.count) == (True, 0)


@dataclass(frozen=True)
class By(Reward):
    """A reward by question id."""

    give: Callable[[str], Score]

    def score(self, trajectories: Sequence[Trajectory], engine: Engine | None = None) -> list[Score]:
        assert engine is not None
        assert not any(t.fault for t in trajectories)
        return [self.give(t.question.id) for t in trajectories]


def test_rewards_that_do_not_exist_are_left_out_with_a_count(world: Any, tmp_path: Path) -> None:
    special = {"q1": Score(0.0, {}, "the judge did not answer"), "q2": Score(float("nan"), {"x": 1.0})}
    reward = By(lambda name: special.get(name, Score(0.5, {"x": 0.5})))
    result = world.run(tmp_path, world.questions(4), world.knows(lambda _: True), reward=reward)
    assert (result["reward"].value, result["reward"].n, result["reward"].left_out) == (0.5, 2, 2)
    assert result["reward/x"].value == 0.5
    reasons = {row["id"]: row["invalid"] for row in _lines(tmp_path / "rewards.jsonl")}
    assert reasons == {"q0": "", "q1": "the judge did not answer", "q2": "the reward is nan", "q3": ""}
    scored = {t.question.id: t.score for t in result.trajectories()}
    assert scored["q0"] == Score(0.5, {"x": 0.5})
    assert scored["q1"] == Score(0.0, {}, "the judge did not answer")


def test_a_judge_that_fails_costs_the_rewards_and_nothing_else(world: Any, tmp_path: Path) -> None:
    def fails(_: str) -> Score:
        raise JudgeError("no judge")

    result = world.run(tmp_path, world.questions(3), world.knows(bool), reward=By(fails))
    assert (result["reward"].value, result["reward"].left_out) == (None, 3)
    assert result["em"].n == 3
    assert [row["invalid"] for row in _lines(tmp_path / "rewards.jsonl")] == ["no judge"] * 3


def test_progress_shows_the_running_score_and_the_time_left(world: Any, tmp_path: Path) -> None:
    seen: list[Progress] = []
    world.run(tmp_path, world.questions(5), world.knows(lambda i: i < 2), progress=seen.append, width=1)
    assert [now.em for now in seen] == pytest.approx([1, 1, 2 / 3, 1 / 2, 2 / 5])
    assert seen[-1].remaining_s == 0.0
    assert seen[0].line().startswith("1/5 · EM 1.000 · F1 1.000 · valid 1.000 · 0:0")
    side_by_side: list[Progress] = []
    parts = {"progress": side_by_side.append, "width": 16}
    world.run(tmp_path / "wide", world.questions(16), world.knows(lambda _: True), **parts)
    assert [now.remaining_s is None for now in side_by_side] == [True] * 3 + [False] * 13
    late = Progress(3, 10, None, 0.25, 0.5, faults=2, elapsed_s=9.0, remaining_s=3725.2)
    assert late.line() == "3/10 · F1 0.250 · valid 0.500 · 2 failed · 1:02:05 left"


def test_a_failed_episode_does_not_shift_the_rewards_of_others(world: Any, tmp_path: Path) -> None:
    def reply(request: Request, turn: int) -> str:
        i = world.thing(request)
        return "<search>broken</search>" if i == 2 else f"<answer>answer {i if i < 4 else 'none'}</answer>"

    number = By(lambda name: Score(float(name[1:]), {}))
    result = world.run(tmp_path, world.questions(6), ScriptedEngine(reply), reward=number)
    totals = {row["id"]: row["total"] for row in _lines(tmp_path / "rewards.jsonl") if not row["invalid"]}
    assert totals == {f"q{i}": float(i) for i in (0, 1, 3, 4, 5)}
    assert (result.n, result.faults, result["em"].value) == (6, 1, 0.5)
    assert result.endings == {"answered": 5, "fault": 1}


def test_the_order_in_which_episodes_end_changes_no_interval() -> None:
    """More distinct values than are counted by value, so that a resample depends on their order."""
    records = [
        Record(f"q{i}", "d", "?", None, (), "steps", "", "", "", 0.0, {"x": i / 7}) for i in range(300)
    ]
    assert summarise(records, {}) == summarise(records[::-1], {})


def test_the_fingerprint_of_questions_covers_their_conversations():
    alone = Question("q", "And when?", ("1999",))
    follow_up = replace(alone, history=(Exchange("Who signed?", "Ann"),))
    other = replace(alone, history=(Exchange("Who signed?", "Tom"),))
    assert len({fingerprint([question]) for question in (alone, follow_up, other)}) == 3
