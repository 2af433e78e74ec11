"""The documentation: its commands exist, its examples run, its site builds without a dead link."""

from __future__ import annotations

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.cli import VERBS, build_parser, main
from sleuth.datasets.records import RecordReader
from sleuth.service.store import Feedback, Store
from support.runs import GOLD, episode, make_run

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[str]:
    """Code blocks of a page in one language, "" for those without."""
    return [text for name, text in _BLOCK.findall(page.read_text(encoding="utf-8")) if name == language]


def commands(page: Path) -> list[list[str]]:
    """The words of every `sleuth` command on a page, without comments and shell operators."""
    text = "\n".join(blocks(page, "")).replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if re.match(r"\s*(?:\w+=\S+ )?sleuth ", line)]
    words = [shlex.split(re.split(r"\s[|>&]", line)[0], comments=True) for line in lines]
    return [each[each.index("sleuth") + 1 :] for each in words]


COMMANDS = [
    pytest.param(words, id=f"{page.stem}: {' '.join(words)[:60]}")
    for page in PAGES
    for words in commands(page)
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


def test_the_quick_start_runs(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my-folder").mkdir()
    (tmp_path / "my-folder" / "apt.md").write_text(
        "# APT\n\nThe file sources.list lists the package sources of APT.\n"
    )
    index, ask, serve = commands(ROOT / "docs" / "index.md")
    assert main(index) == 0
    small = ["--model", str(tiny_model), "--set", "scale.max_new_tokens=4", "--set", "scale.max_context=1000"]
    assert main([*ask, *small]) == 0
    assert "apt.md" in capsys.readouterr().out
    assert serve == ["serve", "--index", "idx"]  # run by tests/cli/service/test_serve.py


@pytest.mark.parametrize(
    ("page", "command", "printed"),
    [
        ("watching", "show runs/mine --html mine.html", "page: mine.html"),
        ("agents", "feedback served -o judged.jsonl", "1 question with 0 rejected answers written to judged.jsonl"),
        ("studies", "study", "eval-rar/table-2"),
        ("studies", "study eval-rar/table-2 --scale cpu --dry-run", "left: 4 of 4 jobs"),
        ("studies", "study eval-rar/table-2 --page", "page: runs/studies/eval-rar-table-2-cpu.html"),
        ("studies", "study published --dataset hotpotqa", "Eval-RAR"),
    ],
)  # fmt: skip
def test_commands_of_the_pages_run(
    page: str,
    command: str,
    printed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    words = command.split()
    assert words in commands(ROOT / "docs" / f"{page}.md")
    monkeypatch.chdir(tmp_path)
    make_run(tmp_path / "runs" / "mine")
    store = Store(tmp_path / "served")
    store.add("a", "rag", episode(GOLD, "Ann Bell", 1.0))
    store.judge(Feedback("a", "up"))
    store.close()
    assert main(words) == 0
    assert printed in capsys.readouterr().out


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
