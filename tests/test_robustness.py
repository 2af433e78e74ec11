"""Robustness runs with a scripted reader that believes the first passage it sees, and refuses without one."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sleuth.cli import main
from sleuth.engines.base import Request
from sleuth.engines.scripted import ScriptedEngine
from sleuth.errors import ConfigError, DataError, RetrievalError
from sleuth.evaluation.comparing.compare import compare
from sleuth.evaluation.perturbed import PerturbedCurve
from sleuth.experiment import Experiment
from sleuth.recipe import Recipe
from sleuth.recipes import load_recipe
from sleuth.recipes.evo_rag.protocol import EvoRAG
from sleuth.robustness import KINDS, levels_of, measure_robustness
from support.towns import CITIES


def rows() -> list[dict[str, Any]]:
    """Eight questions with a gold and a useless paragraph; the last two have no gold passage."""
    made = []
    for i, city in enumerate(CITIES):
        gold = {"id": f"p{i}", "title": city, "text": f"The mayor of {city} is Mr {city}son."}
        useless = {"id": f"r{i}", "title": f"River {i}", "text": f"The mayor of {city} likes river {i}."}
        row = {"id": f"q{i}", "question": f"Who is the mayor of {city}?", "answers": [f"{city}son"]}
        made.append(row | {"passages": [gold, useless]} | ({"gold_ids": [f"p{i}"]} if i < 6 else {}))
    return made


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    path = tmp_path / "dev.jsonl"
    path.write_text("\n".join(map(json.dumps, rows())))
    small = load_recipe("evo-rag/cpu").sized(
        eval_data=f"jsonl:{path}", max_passage_tokens=4000, max_context=20000
    )
    return small.with_settings(["retriever=given"]).but(protocol=EvoRAG("Q: {question}"))


def read(request: Request, turn: int) -> str:
    """Searches for the mayor, then answers the first one named; refuses without one."""
    text = " ".join(message.content for message in request.messages)
    if turn == 0:
        city = re.search(r"mayor of (\w+)\?", text, re.IGNORECASE)
        return f"<think>t</think><search>mayor of {city.group(1) if city else 'x'}</search>"
    named = re.search(r"The mayor of \w+ is Mr (\w+)\.", text)
    return f"<think>t</think>{f'<answer>{named.group(1)}</answer>' if named else '<refuse>no</refuse>'}"


def measured(recipe: Recipe, folder: Path, kind: str, *levels: int, engine=None, pool="") -> PerturbedCurve:
    experiment = Experiment(recipe, folder, checks_leaks=False, say=lambda _: None)
    return measure_robustness(experiment, kind, engine or ScriptedEngine(read, name="reader"), levels, pool)


def values(curve: PerturbedCurve, name: str) -> list[float | None]:
    return [point.figures[name].value for point in curve.points]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_noise_is_shown_and_does_not_distract_this_reader(recipe: Recipe, tmp_path: Path) -> None:
    curve = measured(recipe, tmp_path / "r", "noise", 2, 4)
    assert [(point.level, point.n) for point in curve.points] == [(0, 8), (2, 8), (4, 8)]
    assert values(curve, "passages_shown") == [2.0, 4.0, 6.0]
    assert not any("NOT ALL NOISE" in note for note in curve.notes)
    assert (tmp_path / "r" / "pool").is_dir()
    settings = json.loads((tmp_path / "r" / "noise-4" / "settings.json").read_text())
    assert settings["perturbation"] == {"kind": "noise", "level": "4"}
    assert (settings["retriever"]["retriever"], settings["retriever"]["noise"]) == ("noisy", "4")
    assert "perturbation" not in json.loads((tmp_path / "r" / "noise-0" / "settings.json").read_text())
    written = json.loads((tmp_path / "r" / "robustness-noise.json").read_text())
    assert written == json.loads(json.dumps(curve.to_dict()))
    page = (tmp_path / "r" / "robustness-noise.html").read_text()
    assert page.count("<svg") == len(KINDS["noise"].charts)
    assert all(words in page for words in ("irrelevant passages added", "n = 8", "95 %", "Holm"))
    assert "<script" not in page


def test_noise_without_room_and_failed_episodes_are_noted(recipe: Recipe, tmp_path: Path) -> None:
    curve = measured(recipe.sized(max_passage_tokens=180), tmp_path / "r", "noise", 4)
    assert any("NOT ALL NOISE WAS SEEN at level 4" in note for note in curve.notes)
    curve = measured(recipe, tmp_path / "pool-too-small", "noise", 99)
    (note,) = [note for note in curve.notes if note.startswith("EPISODES FAILED FROM OUTSIDE")]
    assert "8 of 8 at level 99" in note
    assert "too few passages" in note


def test_a_pool_that_cannot_be_opened_is_an_error_before_anything_runs(recipe: Recipe, tmp_path: Path):
    with pytest.raises(RetrievalError, match="no-pool"):
        measured(recipe, tmp_path / "r", "noise", 2, pool=str(tmp_path / "no-pool"))
    assert list((tmp_path / "r").iterdir()) == []


def test_without_its_gold_passage_the_reader_refuses(recipe: Recipe, tmp_path: Path) -> None:
    curve = measured(recipe, tmp_path / "r", "missing-gold", 1)
    assert [point.n for point in curve.points] == [6, 6]
    assert any(note.startswith("2 questions are left out") for note in curve.notes)
    figures = ("em", "refused", "wrong_answer", "gold_recall")
    assert [values(curve, name) for name in figures] == [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    later = curve.points[1]
    assert (later.differences["refused"].value, later.differences["refused"].n) == (1.0, 6)
    assert later.adjusted["em"] == later.differences["em"].p_value == 2 / 2**6
    with pytest.raises(ConfigError, match="not comparable, they differ in retriever"):
        compare([tmp_path / "r" / "missing-gold-0", tmp_path / "r" / "missing-gold-1"])


def test_a_contradicted_reader_takes_the_first_answer(recipe: Recipe, tmp_path: Path) -> None:
    curve = measured(recipe, tmp_path / "r", "contradiction", 1, 2)
    assert values(curve, "contradicted") == [0.0, 1.0, 1.0]
    assert values(curve, "followed")[0] == 0.0
    # It believes the first passage, which is the wrong one for about half of the questions.
    assert 0 < (values(curve, "followed")[1] or 0) < 1
    assert values(curve, "wrong_answer") == values(curve, "followed")
    planted = lines(tmp_path / "r" / "wrong-answers.jsonl")
    golds = {row["id"]: row["answers"][0] for row in rows()}
    assert len(planted) == 8
    assert all(row["answer"] != golds[row["id"]] for row in planted)


def test_paraphrased_questions_are_asked_but_gold_stays(recipe: Recipe, tmp_path: Path) -> None:
    curve = measured(recipe, tmp_path / "r", "paraphrase")
    assert [point.level for point in curve.points] == [0, 1, 2, 3]
    asked = lines(tmp_path / "r" / "paraphrase-1" / "questions.jsonl")
    assert {row["question"] for row in asked} == {f"Which person is the mayor of {city}?" for city in CITIES}
    assert {row["id"]: row["golds"] for row in asked} == {row["id"]: row["answers"] for row in rows()}
    assert "Questions whose text changed: 8 at level 1, 8 at level 2, 8 at level 3, of 8." in curve.notes


def test_a_killed_run_continues_where_it_stopped(recipe: Recipe, tmp_path: Path) -> None:
    recipe = recipe.sized(rollout_batch=2)
    asked: list[int] = []

    def dies_once(request: Request, turn: int) -> str:
        asked.append(turn)
        if len(asked) == 25:
            raise KeyboardInterrupt
        return read(request, turn)

    engine = ScriptedEngine(dies_once, name="reader")
    with pytest.raises(KeyboardInterrupt):
        measured(recipe, tmp_path / "r", "missing-gold", 1, 2, engine=engine)
    assert not (tmp_path / "r" / "robustness-missing-gold.json").exists()
    curve = measured(recipe, tmp_path / "r", "missing-gold", 1, 2, engine=engine)
    assert curve.points == measured(recipe, tmp_path / "whole", "missing-gold", 1, 2).points
    assert len(asked) - 25 < 36 - 20  # 18 episodes of two turns; at least ten were finished before


@pytest.mark.parametrize(
    ("kind", "levels", "words"),
    [
        ("nois", (), "did you mean 'noise'"),
        ("noise", (-1, 2), "0 or more, not -1"),
        ("paraphrase", (4,), "levels 0 to 3, not 4"),
        ("noise", (0,), "other than 0"),
    ],
)
def test_bad_levels(kind: str, levels: Sequence[int], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        levels_of(kind, levels)


def test_questions_without_the_needed_passages_are_an_error(recipe: Recipe, tmp_path: Path) -> None:
    bare = tmp_path / "bare.jsonl"
    bare.write_text('{"id": "a", "question": "Is it?", "answers": ["yes"]}')
    recipe = recipe.sized(eval_data=f"jsonl:{bare}")
    with pytest.raises(DataError, match="no question has what missing-gold needs"):
        measured(recipe, tmp_path / "r", "missing-gold")
    with pytest.raises(ConfigError, match="--pool"):
        measured(recipe, tmp_path / "r", "noise")


def test_from_the_command_line_with_a_model(
    recipe: Recipe, tmp_path: Path, tiny_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [
        "robustness", "search-r1/cpu", "--kind", "missing-gold", "--levels", "1", "--data", recipe.scale.eval_data,
        "--limit", "2", "--model", str(tiny_model), "-o", str(tmp_path / "out"), "--set", "retriever=given",
        "--set", "scale.max_steps=1", "--set", "scale.max_new_tokens=4", "--set", "scale.max_context=900",
    ]  # fmt: skip
    assert main([*arguments, "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert [point["n"] for point in written["points"]] == [2, 2]
    assert any("cannot refuse" in note for note in written["notes"])
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "gold passages withheld" in printed
    assert "robustness-missing-gold.html" in printed
    settings = json.loads((tmp_path / "out" / "missing-gold-1" / "result.json").read_text())
    assert settings["engine"]["engine"] == "TransformersEngine"


def test_command_line_errors_are_one_line(recipe: Recipe, capsys: pytest.CaptureFixture[str]) -> None:
    for more, word in (
        (["--kind", "nois"], "did you mean 'noise'"),
        (["--kind", "noise", "--levels", "1,x"], "whole numbers"),
        (["--kind", "noise", "--model", "gpt2", "--tokenizer", "t"], "of an endpoint"),
    ):
        given = ["--data", recipe.scale.eval_data, "--set", "retriever=given"]
        assert main(["robustness", "rag/cpu", *given, *more]) == 1
        assert word in capsys.readouterr().err.strip().splitlines()[-1]
