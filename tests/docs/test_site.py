"""The documentation: its commands exist, its examples run, its site builds without a dead link."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.cli import VERBS, build_parser
from sleuth.datasets.records import RecordReader
from support.pages import PAGES, ROOT, blocks, commands

COMMANDS = [
    pytest.param(words[words.index("sleuth") + 1 :], id=f"{page.stem}: {' '.join(words)[:60]}")
    for page in PAGES
    for words in commands(page)
    if "sleuth" in words
]


@pytest.mark.parametrize("words", COMMANDS)
def test_every_command_of_the_pages_is_understood(words: list[str]):
    if words[0] == "study" and words[1:2] in (["published"], ["robustness"]):
        words = words[1:]  # as main does
    assert words[0] in VERBS
    if words[0] != "search":  # elsewhere "…" is further options, there it is the query
        words = [word for word in words if word != "…"]
    parsed = build_parser(words[0]).parse_args(words)
    assert parsed.verb == words[0]


def test_the_worked_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for code in blocks(ROOT / "docs" / "extending.md", "python"):
        name = code.splitlines()[0].removeprefix("# ")
        (tmp_path / name).write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    runpy.run_path(str(tmp_path / "use.py"))
    assert capsys.readouterr().out.startswith("APT installs packages. [1]")
    reader = runpy.run_path(str(tmp_path / "my_reader.py"))["QuizReader"]
    (tmp_path / "quiz.jsonl").write_text('{"q": "What installs packages?", "solution": ["APT"]}\n')
    assert issubclass(reader, RecordReader)
    (question,) = reader().load(tmp_path / "quiz.jsonl", strict=True).questions
    assert (question.text, question.answers) == ("What installs packages?", ("APT",))
    for name in ("my_retriever", "my_judge", "my_recipe"):
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_the_site_builds_without_a_dead_link(tmp_path: Path):
    pytest.importorskip("mkdocs", reason="the site needs the extra docs")
    pytest.importorskip("mkdocstrings", reason="the site needs the extra docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr[-2000:]
    html = (tmp_path / "site" / "reference.html").read_text()
    assert "events of one episode" in html
