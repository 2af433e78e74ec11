"""sleuth search over servers and with settings of a retriever."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.cli import main
from sleuth.encoders.cross_encoder import CrossEncoder
from sleuth.types import Passage
from support.cross_encoder import save_cross_encoder
from support.towns import write_towns

Capture = pytest.CaptureFixture[str]


def test_a_search_engine_is_searched_at_its_address(tmp_path: Path, capsys: Capture):
    pytest.importorskip("qdrant_client")
    from sleuth.retrievers.servers.qdrant import Qdrant

    where = str(tmp_path / "engine")
    Qdrant(url=where, collection="towns").upload([Passage("p", "Arlen", "The mayor is Mr Arlenson.")])
    settings = ["--retriever", "qdrant", "--set", "collection=towns"]
    assert main(["search", where, "who is mayor", *settings, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["id"], found["title"]) == ("p", "Arlen")


def test_settings_are_the_retrievers_own(tmp_path: Path, capsys: Capture):
    index = str(write_towns(tmp_path) / "index")
    scores = {}
    for boost in ("0", "2"):
        command = ["search", index, "mayor Brill", "--retriever", "bm25", "--set", f"title_boost={boost}"]
        assert main([*command, "--json"]) == 0
        scores[boost] = json.loads(capsys.readouterr().out)[0]["score"]
    assert scores["2"] > scores["0"]


def test_a_cross_encoder_puts_in_order_what_was_found(tmp_path: Path, capsys: Capture):
    source, index = tmp_path / "letters.jsonl", str(tmp_path / "index")
    texts = {name: f"x {name}" for name in "abcdef"}
    source.write_text("\n".join(json.dumps({"id": n, "title": "", "text": t}) for n, t in texts.items()))
    assert main(["index", str(source), "-o", index]) == 0
    model = str(save_cross_encoder(tmp_path, num_labels=1))
    made = CrossEncoder(model).score([("x", text) for text in texts.values()])
    scores = dict(zip(texts, made, strict=True))
    capsys.readouterr()

    def found(*options: str) -> list[str]:
        assert main(["search", index, "x", "--json", "--rerank", model, *options]) == 0
        return [hit["id"] for hit in json.loads(capsys.readouterr().out)]

    best = sorted(texts, key=lambda name: -scores[name])
    assert found("-k", "6") == best
    assert best != sorted(texts)  # the order of words alone: all tie
    assert found("-k", "1", "--rerank-depth", "3") == [name for name in best if name in "abc"][:1]
    assert main(["search", index, "x", "--rerank", str(tmp_path / "none")]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--retriever", "qdrnt"], "did you mean 'qdrant'?"),
        (["--retriever", "bm25", "--set", "title_bost=1"], "did you mean 'title_boost'?"),
        (["--set", "title_boost=1"], "--set needs --retriever"),
        (["--rerank-depth", "9"], "--rerank-depth needs --rerank"),
        (["--retriever", "bm25", "--set", "path=/elsewhere"], ""),
    ],
)
def test_one_line_for_what_cannot_be(options: list[str], line: str, tmp_path: Path, capsys: Capture):
    assert main(["search", str(tmp_path / "nowhere"), "who", *options]) == 1
    err = capsys.readouterr().err
    assert line in err
    assert len(err.splitlines()) == 1


def test_passages_are_printed_without_markup_or_control_characters(tmp_path: Path, capsys: Capture):
    source, index = tmp_path / "odd.jsonl", str(tmp_path / "index")
    odd = {
        "[/foo]": "gold [bold]not[/] :heart:",
        "[draft] plan.md#1": "gold \x1b[31mred\x1b]0;title\x07 \x9b2J",
        "wiki:book:12": "gold",
    }
    lines = [{"id": name, "title": f"[red]{name}", "text": text} for name, text in odd.items()]
    source.write_text("\n".join(map(json.dumps, lines)))
    assert main(["index", str(source), "-o", index]) == 0
    capsys.readouterr()
    assert main(["search", index, "gold"]) == 0
    shown = capsys.readouterr().out
    for words in (*odd, "[red][/foo]", "gold [bold]not[/] :heart:", "gold [31mred]0;title 2J"):
        assert words in shown
    assert not set("\x1b\x07\x9b") & set(shown)


def test_a_terminal_without_the_letters_gets_their_numbers(tmp_path: Path):
    source, index = tmp_path / "a.jsonl", str(tmp_path / "index")
    source.write_text(json.dumps({"id": "p", "title": "", "text": "gold 漢字"}))
    assert main(["index", str(source), "-o", index]) == 0
    command = [sys.executable, "-m", "sleuth", "search", index, "gold"]
    done = subprocess.run(command, capture_output=True, env=os.environ | {"PYTHONIOENCODING": "latin-1"})
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\\u6f22\\u5b57" in done.stdout
