"""sleuth synth: questions written by a model over documents, and the checks that keep the good ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sleuth.cli import main
from sleuth.datasets import load_questions
from sleuth.engines.base import Request
from sleuth.engines.scripted import ScriptedEngine
from sleuth.errors import EngineError
from sleuth.synthesis.material import choose, connected, usable
from sleuth.synthesis.questions import CHECKS
from sleuth.synthesis.writing import read_pair
from sleuth.types import Passage

FILLER = "It is described here in plain words so that the passage is long enough to be asked about by anybody who reads."
TOWNS = [
    Passage("a", "Harbour", f"The old harbour was rebuilt by Odo Verrin in 1921. {FILLER}"),
    Passage("b", "Painter", f"The famous painter Odo Verrin was born in Karstad. {FILLER}"),
    Passage("c", "Tea", f"The drink is made from leaves in Lumme. {FILLER}"),
]
Capture = pytest.CaptureFixture[str]


def test_passages_that_a_rare_name_connects_are_paired():
    assert [(a.id, b.id, name) for a, b, name in connected(TOWNS)] == [("a", "b", "Odo Verrin")]


def test_short_passages_and_tables_are_left_out():
    table = Passage("t", "", "1 2 3 | 4 5 6 | " * 20)
    assert usable([*TOWNS, Passage("s", "", "Too short."), table]) == TOWNS


def test_the_choice_is_fixed_by_the_seed():
    first, again, other = ([m.passages for m in choose(TOWNS, ("single",), seed)] for seed in (0, 0, 3))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("reply", "pair"),
    [
        ("Question: Who rebuilt it?\nAnswer: Odo Verrin.", ("Who rebuilt it?", "Odo Verrin")),
        ('Sure!\n\nQuestion: "Who?"\n\nAnswer: "A"', ("Who?", "A")),
        ("Question: Tell me.\nAnswer: A", None),
        ("Who rebuilt it?", None),
    ],
)
def test_only_a_question_with_its_answer_is_read(reply: str, pair: tuple[str, str] | None):
    assert read_pair(reply) == pair


Write = Callable[[str], str]


@pytest.fixture
def synth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> Callable[..., tuple[dict[str, object], Path]]:
    """Runs `sleuth synth --json` with a scripted model over the three passages."""
    source, output = tmp_path / "corpus.jsonl", tmp_path / "questions.jsonl"

    def run(
        reply: Write, *options: str, code: int = 0, documents: list[Passage] = TOWNS
    ) -> tuple[dict[str, object], Path]:
        rows = [{"id": p.id, "title": p.title, "text": p.text} for p in documents]
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))

        def model(request: Request, turn: int) -> str:
            return reply(request.messages[0].content)

        monkeypatch.setattr("sleuth.engines.open_engine", lambda name: ScriptedEngine(model))
        assert main(["synth", str(source), "-o", str(output), "--json", *options]) == code
        return json.loads(capsys.readouterr().out), output

    return run


def good(prompt: str) -> str:
    """A model that writes well and reads well."""
    shown = set(re.findall(r"Passage \d \((\w+)\)", prompt))
    if "Reply in two lines" in prompt:
        if "compares" in prompt:
            return "Question: Were the harbour and the painter's birth both in 1921?\nAnswer: No"
        if "does not answer" in prompt:
            return f"Question: What does the {shown.pop()} cost today?\nAnswer: not stated"
        if len(shown) == 2:
            return "Question: Where was the man who rebuilt the old harbour born?\nAnswer: Karstad"
        return {"Harbour": "Question: Who rebuilt the old harbour?\nAnswer: Odo Verrin"}.get(
            shown.pop(), "Question: Where is the drink made?\nAnswer: Lumme"
        )
    for word, reply, needed in (
        ("born?", "Karstad", {"Harbour", "Painter"}),
        ("both", "No, it was not.", {"Harbour"}),
        ("rebuilt", "Odo Verrin", {"Harbour"}),
        ("drink", "Lumme", {"Tea"}),
    ):
        if word in prompt.partition("Question:")[2] and needed <= shown:
            return reply
    return "not stated"


def test_questions_of_every_kind_can_be_trained_on(synth: Callable[..., tuple[dict[str, object], Path]]):
    report, output = synth(good)
    questions = load_questions(f"jsonl:{output}", strict=True).questions
    kinds = {question.kind: question for question in questions}
    assert set(kinds) >= {"single", "unanswerable"}
    assert {"bridge", "comparison"} & set(kinds)
    assert not kinds["unanswerable"].answerable
    assert report["questions"] == len(questions)
    for question in questions:
        if question.kind == "bridge":
            assert set(question.gold_ids) == {"a", "b"}
            assert [hop.answer for hop in question.hops] == ["Odo Verrin", "Karstad"]
            assert "Verrin" not in question.hops[0].query  # what the first search is to find


def writes(question: str, answer: str) -> Write:
    return lambda p: f"Question: {question}\nAnswer: {answer}" if "Reply in two lines" in p else "Odo Verrin"


@pytest.mark.parametrize(
    ("kind", "reply", "check"),
    [
        ("single", lambda p: "I cannot.", "form"),
        ("single", writes("Who rebuilt it?", "one " * 13), "form"),
        ("single", writes("Who rebuilt it?", "Tom Reed"), "grounded"),
        ("single", writes("Was it rebuilt?", "Yes"), "grounded"),
        ("unanswerable", writes("What is not stated about it?", "not stated"), "no_leak"),
        ("single", writes("What does the passage state?", "Odo Verrin"), "no_leak"),
        ("single", writes("Who is Odo Verrin?", "Odo Verrin"), "no_leak"),
        ("bridge", writes("Where was Odo Verrin born?", "Karstad"), "no_leak"),
        ("single", writes("Who rebuilt it?", "Odo Verrin"), "not_from_memory"),
        (
            "bridge",
            lambda p: writes("Where was the builder born?", "Karstad")(p) if "Reply in" in p else "Lumme",
            "round_trip",
        ),
        ("unanswerable", writes("What does it cost?", "not stated"), "round_trip"),
        (
            "bridge",
            lambda p: (
                writes("Where was the builder born?", "Karstad")(p)
                if "Reply in" in p
                else "Karstad" * ("Passage" in p) or "not stated"
            ),
            "needs_all",
        ),
    ],
)
def test_a_faulty_question_is_counted_at_its_check(
    kind: str, reply: Write, check: str, synth: Callable[..., tuple[dict[str, object], Path]]
):
    report, output = synth(reply, "--kinds", kind, code=1)
    figures = report["yield"][kind]  # type: ignore[index]
    assert figures[check] > 0
    assert figures["kept"] == 0
    assert figures["written"] == sum(figures[name] for name in CHECKS)
    assert not output.exists()


def test_the_same_question_is_kept_once(synth: Callable[..., tuple[dict[str, object], Path]]):
    def reply(prompt: str) -> str:
        if "Reply in two lines" in prompt:
            return "Question: How is it described here?\nAnswer: in plain words"
        return "in plain words" if "Passage" in prompt else "not stated"

    report, _ = synth(reply, "--kinds", "single")
    assert report["yield"]["single"]["new"] == 2  # type: ignore[index]
    assert report["questions"] == 1


def test_every_tenth_question_is_set_aside(
    synth: Callable[..., tuple[dict[str, object], Path]], tmp_path: Path
):
    documents = [
        Passage(f"p{i}", f"Town {i}", f"The town was founded by person{i} of old. {FILLER}")
        for i in range(20)
    ]

    def reply(prompt: str) -> str:
        place = re.search(r"person(\d+)|town(\d+) alone", prompt)
        number = next(filter(None, place.groups())) if place else ""
        if "Reply in two lines" in prompt:
            return f"Question: Which founder had town{number} alone as x{number} y{number} z{number}?\nAnswer: person{number}"
        return f"person{number}" if "Passage" in prompt else "not stated"

    report, output = synth(
        reply, "--kinds", "single", "--dev", str(tmp_path / "dev.jsonl"), documents=documents
    )
    kept = [
        len(load_questions(f"jsonl:{path}", strict=True).questions)
        for path in (output, tmp_path / "dev.jsonl")
    ]
    assert kept == [18, 2]
    assert report["files"] == {str(output): 18, str(tmp_path / "dev.jsonl"): 2}


def test_a_writer_that_fails_later_costs_no_question(
    synth: Callable[..., tuple[dict[str, object], Path]], monkeypatch: pytest.MonkeyPatch, capsys: Capture
):
    monkeypatch.setattr("sleuth.synthesis.questions.BATCH", 1)

    def reply(prompt: str) -> str:
        if "leaves in Lumme" in prompt:
            raise EngineError("the endpoint does not answer")
        return good(prompt)

    report, output = synth(reply, "--kinds", "single", "--seed", "1", code=1)
    kept = load_questions(f"jsonl:{output}", strict=True).questions
    assert len(kept) >= 1
    assert report["files"] == {str(output): len(kept)}


def test_a_killed_run_loses_no_question(
    synth: Callable[..., tuple[dict[str, object], Path]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("sleuth.synthesis.questions.BATCH", 1)

    class Killed(BaseException):
        """An end that no code handles."""

    def reply(prompt: str) -> str:
        if "leaves in Lumme" in prompt:
            raise Killed
        return good(prompt)

    with pytest.raises(Killed):
        synth(reply, "--kinds", "single", "--seed", "1")
    assert load_questions(f"jsonl:{tmp_path / 'questions.jsonl'}", strict=True).questions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kinds", "brige"], "did you mean 'bridge'"),
        (["--count", "0"], "--count"),
        ([], "no file or folder"),
        (["--dev", "."], "is a folder, not a file"),
        (["--dev", "/dev/null/x"], "/dev/null/x cannot be written"),
        (["--dev", "{tmp}/x"], "--dev and --output are the same file"),
    ],
)
def test_bad_options_are_one_line(options: list[str], message: str, tmp_path: Path, capsys: Capture):
    given = [option.format(tmp=tmp_path) for option in options]
    assert main(["synth", str(tmp_path / "none"), "-o", str(tmp_path / "x"), *given]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
