import io
import json
from pathlib import Path

import pytest

from sleuth.cli import main
from sleuth.engines.scripted import ScriptedEngine

Capture = pytest.CaptureFixture[str]

PASSAGES = [
    {"id": "p1", "title": "Emma", "text": "Emma is a novel by Ann Bell."},
    {"id": "p2", "title": "Tea", "text": "Tea is a drink."},
]


@pytest.fixture
def passages(tmp_path: Path) -> str:
    path = tmp_path / "passages.jsonl"
    path.write_text("".join(json.dumps(passage) + "\n" for passage in PASSAGES))
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--recipe", "search-r1/cpu"], "search-r1/cpu searches an index and none is named: --index DIR"),
        ([], "rag/paper searches an index"),
        (["--recipe", "arena/cpu"], "--passages SRC"),
        (["--recipe", "arena/cpu", "--index", "somewhere"], "--set retriever=bm25 --index DIR"),
        (["--recipe", "eviomni/read"], "set retriever.path"),
        (["--recipe", "arena/cpu", "--passages", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_missing_input_is_reported_before_a_model_loads(arguments: list[str], message: str, capsys: Capture):
    assert main(["ask", "Who wrote Emma?", *arguments, "--model", "no/such-model"]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert len(captured.err.splitlines()) == 1


def test_no_retrieval_needs_no_index(tiny_model: Path, capsys: Capture):
    asked = ["ask", "Who wrote Emma?", "--recipe", "direct/cpu", "--model", str(tiny_model), "--json"]
    assert main([*asked, "--set", "scale.max_new_tokens=4"]) == 0
    reply = json.loads(capsys.readouterr().out)
    assert {"answer", "text", "status", "citations", "evidence", "steps", "valid", "ending"} == set(reply)
    assert reply["status"] in ("unsupported", "not_found", "no_answer")
    assert reply["evidence"] == []


def test_passages_are_given_with_the_question(tiny_model: Path, passages: str, capsys: Capture):
    asked = ["ask", "Who wrote Emma?", "--recipe", "arena/cpu", "--passages", passages, "--json"]
    small = ["--set", "scale.max_new_tokens=4", "--set", "scale.max_context=1000"]
    assert main([*asked, *small, "--model", str(tiny_model)]) == 0
    reply = json.loads(capsys.readouterr().out)
    assert [passage["id"] for passage in reply["evidence"]] == ["p1", "p2"]


@pytest.fixture
def index(tmp_path: Path, passages: str) -> str:
    assert main(["index", passages, "-o", str(tmp_path / "idx"), "--json"]) == 0
    return str(tmp_path / "idx")


def test_chat_answers_every_line_and_shows_its_searches(
    tiny_model: Path, index: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
):
    capsys.readouterr()
    monkeypatch.setattr("sys.stdin", io.StringIO("Who wrote Emma?\nIs tea a drink?\n\nnever asked\n"))
    small = ["--set", "scale.max_new_tokens=4", "--set", "scale.max_context=1000"]
    assert main(["chat", index, "--model", str(tiny_model), *small]) == 0
    shown = capsys.readouterr().out
    assert shown.index("searching: Who wrote Emma?") < shown.index("found: Emma")
    assert "searching: Is tea a drink?" in shown
    assert "never asked" not in shown


def test_a_chat_continues_after_an_error_and_ends_with_it(
    index: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
):
    capsys.readouterr()
    monkeypatch.setattr("sleuth.agent.open_engine", lambda _: ScriptedEngine([]))
    monkeypatch.setattr("sys.stdin", io.StringIO("Who wrote Emma?\nAnd when?\n"))
    assert main(["chat", index, "--model", "any"]) == 1
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 2
    assert "the script has 0 replies" in errors[0]


def test_a_byte_that_is_not_text_does_not_end_the_chat(
    index: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sleuth.agent.open_engine", lambda _: ScriptedEngine(["Ann Bell"]))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"Who wrote \xff Emma?\n"), "utf-8"))
    assert main(["chat", index, "--model", "any"]) == 0
    assert "Ann Bell" in capsys.readouterr().out


def test_chat_reports_a_missing_index_in_one_line(capsys: Capture):
    assert main(["chat", "nowhere"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_an_unknown_judge_is_reported_before_the_model_is_loaded(index: str, capsys: Capture):
    capsys.readouterr()
    asked = ["ask", "Who wrote Emma?", "--index", index, "--model", "no/such", "--judge", "small"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLEUTH_CACHE", "/nonexistent")
        assert main(asked) == 1
    assert "sleuth judge train" in capsys.readouterr().err
