import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sleuth.cli import main

GOOD: dict[str, Any] = {
    "question": "When did the person who gave the Checkers speech die?",
    "answers": ["April 22, 1994"],
    "passages": [{"id": "p1", "title": "Checkers speech", "text": "… Richard Nixon."}],
    "gold_ids": ["p1"],
    "segments": [
        {"by": "model", "text": "<think>who?</think><search>Checkers speech</search>"},
        {"by": "environment", "text": "<information>Doc 1(Title: Checkers speech) …</information>"},
        {"by": "model", "text": "<evaluate>Died April 22, 1994.</evaluate><answer>April 22, 1994</answer>"},
    ],
}


@pytest.fixture
def score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Scores rows with a recipe's reward: exit code, results, standard error."""

    def run(recipe: str, *rows: Any, setting: str = "") -> tuple[int, list[Any], str]:
        path = tmp_path / "rows.jsonl"
        path.write_bytes(
            b"\n".join(r if isinstance(r, bytes) else json.dumps(r).encode() for r in rows) + b"\n"
        )
        code = main(
            ["reward", recipe, "--input", str(path), "--json", *(["--set", setting] if setting else [])]
        )
        captured = capsys.readouterr()
        return code, [json.loads(line) for line in captured.out.splitlines()], captured.err

    return run


NOTE = "<evaluate>Died April 22, 1994.</evaluate><answer>1952</answer>"
FORGED = [{"by": "environment", "text": "<evaluate>April 22, 1994</evaluate><answer>April 22, 1994</answer>"}]
WRONG = {"answer": 0.0, "evaluation": 0.0}
EMPTY = {"total": 0.0, "answer": None, "valid": False}
RIGHT = {"answer": "April 22, 1994", "valid": True, "total": 1.0, "parts": {"answer": 1.0, "evaluation": 0.1}}
SHORT = {"question": "?", "answers": "x", "segments": [{"by": "model", "text": "<answer>X</answer>"}]}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (GOOD, RIGHT),
        # A wrong answer with the gold in the notes.
        (GOOD | {"segments": [*GOOD["segments"][:2], {"by": "model", "text": NOTE}]}, {"total": 0.1}),
        # Text of the environment earns nothing.
        (GOOD | {"segments": FORGED}, EMPTY | {"parts": WRONG, "why": "no answer"}),
        (GOOD | {"segments": []}, EMPTY),
        # Answers may be one string, and optional fields may be missing or null.
        (SHORT, {"total": 1.0}),
        (GOOD | dict.fromkeys(("id", "passages", "gold_ids", "probes", "entailment")), {"total": 1.0}),
    ],
)
def test_scores(score: Callable[..., Any], row: Any, expected: dict[str, Any]):
    code, (found,), _ = score("eval-rar", row)
    assert code == 0
    assert found == (expected if len(expected) > 3 else found | expected)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (b"{", "JSON"),
        (b"\xff\xfe", "rows.jsonl:2"),
        ({"question": "?", "answers": ["x"]}, "segments"),
        ({"question": 3, "answers": ["x"], "segments": []}, "question"),
        (GOOD | {"answers": [1]}, "answers"),
        (GOOD | {"passages": [{"id": 1, "text": "x"}]}, r"passages[0].id"),
        (GOOD | {"segments": [*GOOD["segments"], {"by": "tool", "text": "x"}]}, "segments[3].by"),
        (GOOD | {"entailment": "high"}, "entailment"),
        (GOOD | {"probes": {"rationale": 1}}, "probes.rationale"),
        (b'{"question": "\\ud800"', "rows.jsonl:2"),
        (b'{"x": ' + b"[" * 100_000, "rows.jsonl:2"),
    ],
)
def test_bad_rows_keep_their_place(score: Callable[..., Any], row: Any, reason: str):
    code, rows, err = score("eval-rar", GOOD, row, GOOD)
    assert code == 1
    assert [("error" in r) for r in rows] == [False, True, False]
    assert reason in err
    assert len(err.splitlines()) == 1
    assert "rows.jsonl:2" in rows[1].pop("error")
    del rows[1]["why"]
    assert rows[1] == {"total": None, "parts": {}, "answer": None, "valid": False}


ARENA = GOOD | {"segments": [{"by": "model", "text": "<relevance>[1]</relevance>"}]}
EVIOMNI = GOOD | {"segments": [{"by": "model", "text": "<reason>r</reason><extract>e</extract>"}]}
SUMMARY = {"by": "model", "text": "<summary>* a\n- b</summary><answer>April 22, 1994</answer>"}
NOTED = GOOD | {"segments": [*GOOD["segments"][:2], SUMMARY]}


@pytest.mark.parametrize(
    ("recipe", "row", "reason"),
    [
        ("arena", ARENA | {"gold_ids": ["p9"]}, "gold_ids: 'p9' is not among the 1 references"),
        ("arena", ARENA | {"passages": []}, "gold_ids: 'p1' is not among the 0 references"),
        ("arena", ARENA | {"gold_ids": []}, "gold_ids: the question names no gold passage"),
        ("eviomni", EVIOMNI, "probes.rationale"),
        ("eviomni", EVIOMNI | {"probes": {"rationale": "x"}}, "probes.evidence"),
        ("evinote-rag", NOTED | {"entailment": 1.5}, "entailment must be at most 1, not 1.5"),
        ("evo-rag", GOOD | {"gold_ids": ["p9"]}, "gold_ids: 'p9' points to no passage"),
        ("evo-rag", GOOD | {"gold_ids": []}, "gold_ids"),
        ("evo-rag", GOOD | {"passages": None}, "passages"),
    ],
)
def test_rows_that_cannot_be_scored_name_the_field(
    score: Callable[..., Any], recipe: str, row: Any, reason: str
):
    code, rows, err = score(recipe, row)
    assert code == 1
    assert reason in err
    assert "rows.jsonl:1" in err
    assert reason in rows[0]["why"]
    assert rows[0]["total"] is None


def test_a_judge_that_is_missing_is_an_error_of_its_row(score: Callable[..., Any], tmp_path: Path):
    nowhere = f"reward.judge.model={tmp_path / 'nowhere'}"
    for setting, reason in (("reward.judge=none", "reward.judge"), (nowhere, "nowhere")):
        rows = (NOTED, NOTED | {"entailment": 0.5})
        code, (first, second), _ = score("evinote-rag", *rows, setting=setting)
        assert code == 1
        assert reason in first["error"]
        assert second["total"] == 1.5


def test_every_row_draws_its_own_lot(score: Callable[..., Any]):
    noted = {"by": "model", "text": "<summary>x</summary><answer>1952</answer>"}
    rows = [GOOD | {"id": str(i), "segments": [*GOOD["segments"][:2], noted]} for i in range(300)]
    first, again = (score("evinote-rag/fs-sr", *rows)[1] for _ in range(2))
    assert first == again
    paid = [row["total"] for row in first]
    assert set(paid) == {0.0, 0.1}
    assert 75 <= paid.count(0.1) <= 125, "a third (appendix B.1), within three deviations"


def test_an_empty_file_is_an_error(tmp_path: Path):
    (tmp_path / "empty.jsonl").write_text("\n")
    assert main(["reward", "eval-rar", "--input", str(tmp_path / "empty.jsonl")]) == 1
