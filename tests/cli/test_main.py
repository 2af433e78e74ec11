import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.cli import VERBS
from support.command import run

Capture = pytest.CaptureFixture[str]


def assert_one_clear_line(code: int, err: str, word: str) -> None:
    lines = [line for line in err.splitlines() if line.strip()]
    assert code != 0
    assert len(lines) == 1, err
    assert word in lines[0]
    assert "Traceback" not in err


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(capsys: Capture, verb: str):
    code, out, _ = run(capsys, verb, "--help")
    assert code == 0
    assert f"sleuth {verb}" in out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["recipe"], "invalid choice"),
        (["recipes", "eval-rr"], "did you mean 'eval-rar'"),
        (["reward", "eval-rar"], "--input"),
        (["reward", "eval-rar", "--input", "none.jsonl"], "none.jsonl"),
        (["score", "--dataset", "hotpotq", "--input", "none.jsonl"], "hotpotqa"),
        (["score", "--dataset", "hotpotqa", "--input", "none.jsonl"], "none.jsonl"),
        (["search", "no-such-index", "q"], "no-such-index"),
        (["ask", "q", "--index", "no-such-index"], "no-such-index"),
        (["ask", "q", "--index", "i", "--run", "no-run"], "no-run"),
        (["index", "no-such-source", "-o", "x"], "no-such-source"),
        (["train", "eval-rar/cpu", "--set", "algorithm.betta=1"], "did you mean 'beta'"),
        (["train", "eval-rar/cpu", "--set", "scale.top_k=0"], "at least 1"),
        (["eval", "eval-rar/cpu", "--limit", "-1"], "--limit"),
        (["eval", "no-such-recipe"], "unknown recipe"),
        (["eval", "rag/cpu", "--index", "no-index", "--model", "no-model"], "index 'no-index'"),
        (["compare", "a"], "a: no evaluation"),
        (["compare", "a", "--json", "--latex"], "not allowed with"),
        (["demo", "--minutes", "0"], "--minutes"),
        ([], "required"),
    ],
)
def test_errors_are_one_line_and_non_zero(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], word: str
):
    monkeypatch.chdir(tmp_path)
    code, _, err = run(capsys, *arguments)
    assert_one_clear_line(code, err, word)
    assert list(tmp_path.iterdir()) == [], "a refused command left something behind"


def test_recipes_json_lists_every_slot(capsys: Capture):
    code, out, _ = run(capsys, "recipes", "--json")
    recipes = json.loads(out)
    assert code == 0
    assert {"eval-rar/cpu", "eval-rar/paper", "search-r1/cpu", "rag/cpu"} <= {r["name"] for r in recipes}
    slots = {"protocol", "retriever", "reward", "algorithm", "scale", "source"}
    assert all(slots <= recipe.keys() for recipe in recipes)


def test_a_closed_pipe_is_not_an_error(tmp_path: Path):
    script = f'{sys.executable} -c \'from sleuth.cli import main; import sys; sys.exit(main(["recipes", "--json"]))\' | head -c 1'
    command = ["bash", "-c", f"set -o pipefail; {script}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout == "["
    assert "Traceback" not in result.stderr
    assert result.returncode == 0


def test_a_table_for_a_reader_that_is_gone_is_not_an_error():
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, "-m", "sleuth", "recipes"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (0, "")


def test_an_interrupt_is_not_a_crash(monkeypatch: pytest.MonkeyPatch, capsys: Capture):
    import sleuth.cli.runs.recipes_

    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(sleuth.cli.runs.recipes_, "run", interrupt)
    code, _, err = run(capsys, "recipes")
    assert code == 130
    assert err == "sleuth: interrupted\n"


def test_a_recipe_file_that_exits_is_an_error(tmp_path: Path, capsys: Capture):
    path = tmp_path / "mine.py"
    path.write_text("import sys\nsys.exit(0)\n")
    code, _, err = run(capsys, "recipes", str(path))
    assert_one_clear_line(code, err, "sys.exit(0)")


PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(not PAGES.exists() or "[never]" in PAGES.read_text(), reason="no huge pages here")
def test_large_tensors_take_huge_pages():
    script = """
from pathlib import Path
from sleuth.cli import main
main(["recipes"])
import torch
large = torch.ones(1 << 24)
print(next(line for line in Path("/proc/self/smaps_rollup").read_text().splitlines() if "AnonHuge" in line))
"""
    environment = {k: v for k, v in os.environ.items() if k != "THP_MEM_ALLOC_ENABLE"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert int(done.stdout.splitlines()[-1].split()[1]) >= 2 << 10  # kB: one page at least
