"""Several samples a question: figures by kind, continued after a kill, refused where they mean nothing."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from sleuth.engines.base import Request, Sampling
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.world import World
from sleuth.errors import ConfigError
from sleuth.evaluation.headroom import SAMPLES, measure_headroom, read_rates
from sleuth.protocols.search_tags import SearchTags
from sleuth.retrievers.none import NoRetriever
from sleuth.storage import read_json
from sleuth.types import Question

QUESTIONS = [
    Question("always", "Is it always?", ("yes",), kind="yes/no"),
    Question("never", "Is it never?", ("no",), kind="yes/no"),
    Question("half", "Is it half?", ("yes",), kind="bridge"),
]


def answer(request: Request, turn: int) -> str:
    """Yes; for "half" by the seed."""
    sure = "half" not in request.messages[0].content
    return f"<answer>{'yes' if sure or random.Random(request.seed).random() < 0.5 else 'no'}</answer>"


def world(**changes: object) -> World:
    engine = ScriptedEngine(answer, name="scripted")
    made = World(SearchTags("Q: {question}"), engine, NoRetriever(), Limits(), Sampling(temperature=0.8))
    return replace(made, **changes)  # type: ignore[arg-type]


def test_figures_of_all_and_of_each_kind(tmp_path: Path) -> None:
    found = measure_headroom(QUESTIONS, world(), tmp_path, 8)
    yes_no, bridge = found["kinds"]["yes/no"], found["kinds"]["bridge"]
    assert (found["n"], found["k"], found["faults"]) == (3, 8, 0)
    assert (yes_no["mean"]["value"], yes_no["pass"]["value"], yes_no["live"]["value"]) == (0.5, 0.5, 0.0)
    assert yes_no["histogram"] == [1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert bridge["live"]["value"] == bridge["pass"]["value"] == 1.0
    assert 0 < bridge["mean"]["value"] < 1
    assert found["all"]["live"]["value"] == pytest.approx(1 / 3)
    assert read_json(tmp_path / "headroom.json") == found
    rates = read_rates(tmp_path)
    assert [rates["", name] for name in ("always", "never")] == [1.0, 0.0]
    assert rates["", "half"] == bridge["mean"]["value"]


def test_a_killed_measurement_is_continued(tmp_path: Path) -> None:
    whole = measure_headroom(QUESTIONS, world(), tmp_path / "whole", 4)
    measure_headroom(QUESTIONS, world(), tmp_path / "cut", 4)
    path = tmp_path / "cut" / SAMPLES
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]) + b'{"torn')
    seen: list[int] = []
    again = measure_headroom(QUESTIONS, world(), tmp_path / "cut", 4, progress=lambda n, _: seen.append(n))
    assert seen == list(range(6, 13))
    assert again["all"]["mean"] == whole["all"]["mean"]


def test_one_sample_greedy_decoding_and_other_settings_are_refused(tmp_path: Path) -> None:
    for samples, temperature in ((1, 0.8), (4, 0.0)):
        with pytest.raises(ConfigError, match="at least 2 samples at a temperature above 0"):
            measure_headroom(QUESTIONS, world(sampling=Sampling(temperature=temperature)), tmp_path, samples)
    measure_headroom(QUESTIONS, world(), tmp_path, 2)
    with pytest.raises(
        ConfigError, match="holds a measurement that differs in samples; choose another folder"
    ):
        measure_headroom(QUESTIONS, world(), tmp_path, 3)


def test_questions_and_not_their_samples_are_resampled(tmp_path: Path) -> None:
    """Two questions, one valid in every sample and one in none: the interval is [0, 1] however many samples."""
    engine = ScriptedEngine(
        lambda request, _: "nonsense" if "never" in request.messages[0].content else "<answer>yes</answer>"
    )
    found = measure_headroom(QUESTIONS[:2], world(engine=engine), tmp_path, 16)["all"]
    expected = {"value": 0.5, "low": 0.0, "high": 1.0, "n": 2, "left_out": 0}
    assert found["valid_format"] == expected
    entropies = [(found[name]["n"], found[name]["left_out"]) for name in ("answer_entropy", "query_entropy")]
    assert entropies == [(1, 1), (0, 2)]


def test_equal_weights_at_another_place_continue_a_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def moved() -> World:
        return world(engine=ScriptedEngine([], name="there/model"))  # any call would raise

    measure_headroom(QUESTIONS, world(), tmp_path / "unseen", 2)
    with pytest.raises(ConfigError, match="differs in model;"):  # weights that nobody can see
        measure_headroom(QUESTIONS, moved(), tmp_path / "unseen", 2)
    weights = iter(["w", "w", "v"])
    monkeypatch.setattr(ScriptedEngine, "fingerprint", lambda _: next(weights))
    first = measure_headroom(QUESTIONS, world(), tmp_path / "seen", 2)
    assert measure_headroom(QUESTIONS, moved(), tmp_path / "seen", 2)["all"] == first["all"]
    with pytest.raises(ConfigError, match="differs in weights;"):
        measure_headroom(QUESTIONS, moved(), tmp_path / "seen", 2)
