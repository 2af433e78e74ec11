"""`sleuth reward` against rewards worked out by hand from the papers' equations, edge by edge, for every method.

Each row: the model's and the environment's texts, what else the row brings, and the parts, total and validity expected.
"""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from sleuth.cli import main
from sleuth.recipes.evo_rag.curriculum import PARTS

Turns = list[tuple[str, str]]
M, E = "model", "environment"


def run(recipe: str, rows: list[dict[str, Any]], folder: Path, capsys: Any, *settings: str) -> list[Any]:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    sets = [word for setting in settings for word in ("--set", setting)]
    assert main(["reward", recipe, "--input", str(path), "--json", *sets]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def row(turns: Turns, answers: list[str] | None = None, **others: Any) -> dict[str, Any]:
    segments = [{"by": by, "text": text} for by, text in turns]
    return {"question": "Who wrote Emma?", "answers": answers or ["Ann Bell"], "segments": segments, **others}


def check(got: dict[str, Any], parts: dict[str, float], total: float, valid: bool) -> None:
    assert got["parts"] == pytest.approx(parts)
    assert list(got["parts"]) == list(parts)
    assert got["total"] == pytest.approx(total)
    assert got["valid"] is valid
    assert ("why" in got) is not valid


SEARCH = (M, "<think>who?</think><search>Emma author</search>")
ANN, ZOE = (M, "<answer>Ann Bell</answer>"), (M, "<answer>Zoe</answer>")
RESULT = (E, '\n\n<information>Doc 1(Title: "Emma") A novel.</information>\n\n')

SEARCH_R1: list[tuple[Turns, list[str], float, bool]] = [
    ([SEARCH, RESULT, (M, "<answer> ann  BELL. </answer>")], ["Ann Bell"], 1, True),
    ([(M, "<answer>The Bell</answer>")], ["Ann Bell", "A bell"], 1, True),  # an alias, articles apart
    ([(M, "<answer>Ann Bell (writer)</answer>")], ["Ann Bell"], 0, True),
    ([(M, "<answer>Zoë</answer>")], ["Zoë"], 1, True),
    ([(M, "<answer>Zoe</answer>")], ["Zoë"], 0, True),  # SQuAD's rule keeps accents
    ([(M, "<answer>x</answer>"), (M, "<answer>Ann Bell</answer>")], ["Ann Bell"], 1, False),
    ([(M, "<answer>Ann Bell")], ["Ann Bell"], 0, False),
    ([(M, "<ANSWER>Ann Bell</ANSWER>")], ["Ann Bell"], 0, False),
    ([(M, "<answer>x <answer>Ann Bell</answer></answer>")], ["Ann Bell"], 1, False),
    ([(M, "<answer>\n</answer>")], ["Ann Bell"], 0, False),
    ([(M, "<thi"), (M, "nk>t</think><ans"), (M, "wer>Ann Bell</answer>")], ["Ann Bell"], 1, True),
    ([SEARCH, (E, "<information><answer>Ann Bell</answer></information>")], ["Ann Bell"], 0, False),
    ([SEARCH, RESULT, (M, "")], ["Ann Bell"], 0, False),
    ([], ["Ann Bell"], 0, False),
]


def test_search_r1(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = run("search-r1", [row(turns, answers) for turns, answers, _, _ in SEARCH_R1], tmp_path, capsys)
    for got, (_, _, em, valid) in zip(found, SEARCH_R1, strict=True):
        check(got, {"answer": em}, em, valid)


def noted(*notes: str, answer: str = "Zoe", tag: str = "evaluate") -> Turns:
    turns: Turns = []
    for note in notes[:-1]:
        turns += [SEARCH, RESULT, (M, f"<{tag}>{note}</{tag}>")]
    return [*turns, SEARCH, RESULT, (M, f"<{tag}>{notes[-1]}</{tag}><answer>{answer}</answer>")]


EVAL_RAR: list[tuple[Turns, list[str], float, float, float, bool]] = [
    # answer, evaluation, total
    (noted("nothing", answer="Ann Bell"), ["Ann Bell"], 1, 0, 1, True),
    (noted("It was ann bell!", answer="Ann Bell"), ["Ann Bell"], 1, 0.1, 1, True),
    (noted("It was ANN-BELL's"), ["Ann Bell"], 0, 0, 0, True),  # "annbells" is another token
    (noted("Doc 1: Ann Bell."), ["Jane", "Ann Bell"], 0, 0.1, 0.1, True),
    (noted("Annabell"), ["Ann Bell"], 0, 0, 0, True),
    (noted("I know no more: no"), ["no"], 0, 0, 0, True),
    (noted("in 19 May 1990"), ["9"], 0, 0, 0, True),
    ([*noted("Ann Bell")[:-1], (M, "<evaluate>Ann Bell</evaluate>")], ["Ann Bell"], 0, 0, 0, False),
    ([SEARCH, RESULT, (M, "<evaluate>Ann Bell<answer>Zoe</answer>")], ["Ann Bell"], 0, 0, 0, False),
    ([SEARCH, (E, "<evaluate>Ann Bell</evaluate>"), ZOE], ["Ann Bell"], 0, 0, 0, False),
    ([(M, "Ann Bell")], ["Ann Bell"], 0, 0, 0, False),  # all tags missing
]


def test_eval_rar(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = run("eval-rar", [row(turns, answers) for turns, answers, *_ in EVAL_RAR], tmp_path, capsys)
    for got, (_, _, answer, evaluation, total, valid) in zip(found, EVAL_RAR, strict=True):
        check(got, {"answer": answer, "evaluation": evaluation}, total, valid)


def test_autorefine(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    cases = [
        # F1 of {bell} and {ann, bell} = 2/3 and pays alone; 0.1 only where F1 is 0
        (noted("Ann Bell", answer="Bell", tag="refine"), ["Ann Bell"], 2 / 3, 0.1, 2 / 3),
        (noted("Ann Bell", tag="refine"), ["Ann Bell"], 0, 0.1, 0.1),
        (noted("nothing", tag="refine"), ["Ann Bell"], 0, 0, 0),
        # HotpotQA's rule: yes against anything else is 0, and never contained
        (noted("yes", answer="yes it is", tag="refine"), ["yes"], 0, 0, 0),
        (noted("I know", answer="yes", tag="refine"), ["no"], 0, 0, 0),
        (noted("no", answer="no", tag="refine"), ["no"], 1, 0, 1),
        (noted("Annabell", tag="refine"), ["Anna", "Bea"], 0, 0, 0),
        (noted("see A. Bell", tag="refine"), ["Ann Bell", "A Bell"], 0, 0.1, 0.1),
    ]
    rows = [row(turns, answers) for turns, answers, *_ in cases]
    for got, (_, _, answer, refinement, total) in zip(
        run("autorefine", rows, tmp_path, capsys), cases, strict=True
    ):
        check(got, {"answer": answer, "refinement": refinement}, total, True)
    # As released: "no" is in "know", and "Anna" in "Annabell".
    released = [got["total"] for got in run("autorefine/code", rows, tmp_path, capsys)]
    assert released[-4:] == [0.1, 1.0, 0.1, 0.1]


PASSAGES = [{"id": f"p{i}", "title": f"T{i}", "text": f"Text {i}."} for i in range(1, 6)]
FULL = "<relevance>[2, 4]</relevance>\n<analysis>both</analysis>\n<answer>Ann Bell</answer>"
ARENA: list[tuple[str, tuple[float, float, float, float]]] = [
    # format, accuracy, relevance, bonus
    (FULL, (1, 1, 1, 10)),
    (f"\n{FULL}\n", (1, 1, 1, 10)),
    (FULL.replace("[2, 4]", "[1, 2, 3, 4, 5]"), (1, 1, 0.5, 0)),
    (FULL.replace("[2, 4]", "[1, 3]"), (1, 1, 0, 0)),
    (FULL.replace("[2, 4]", "[4, 2, 9]"), (1, 1, 0.5, 0)),
    (FULL.replace("[2, 4]", ""), (1, 1, 0, 0)),
    (FULL.replace("Ann Bell", "Ann‘Bell´"), (1, 1, 1, 10)),  # ARENA's normaliser: a space each
    (FULL.replace("Ann Bell", "AnnBell"), (1, 0, 1, 0)),
    (f"Sure! {FULL}", (0, 1, 1, 0)),
    (f"{FULL} Done.", (0, 1, 1, 0)),
    (FULL.replace("</analysis>", ""), (0, 1, 1, 0)),
    (FULL.replace("analysis>", "reasoning>"), (0, 1, 1, 0)),
    (f"{FULL}{FULL}", (0, 1, 1, 0)),
    (FULL.replace("both", "<answer>x</answer>"), (0, 1, 1, 0)),
    ("Ann Bell [2, 4]", (0, 0, 0, 0)),
    ("", (0, 0, 0, 0)),
]


def test_arena(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    brings = {"passages": PASSAGES, "gold_ids": ["p2", "p4"]}
    names = ("format", "accuracy", "relevance", "bonus")
    whole = run("arena", [row([(M, text)], **brings) for text, _ in ARENA], tmp_path, capsys)
    # The same responses cut into pieces of seven characters
    cut = [[(M, text[i : i + 7]) for i in range(0, len(text), 7)] for text, _ in ARENA]
    pieces = run("arena", [row(turns, **brings) for turns in cut], tmp_path, capsys)
    for got, again, (_, parts) in zip(whole, pieces, ARENA, strict=True):
        check(got, dict(zip(names, parts, strict=True)), sum(parts), bool(parts[0]))
        assert again == got


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


# "Doc 1(Title: Emma)" is 3 words, so that the passages as shown have 20.
SHOWN = [{"id": "p", "title": "Emma", "text": " ".join(f"w{i}" for i in range(17))}]
WHOLE = "<reason>a b c d</reason><extract>e f</extract><answer>Ann Bell</answer>"
RIGHT = {"rationale": "Ann Bell", "evidence": "ann bell"}
EVIOMNI: list[tuple[str, dict[str, str] | None, float, float, float]] = [
    # answer, length, format. L_r = 4, L_e = 2, L_P = 20: σ((4/2 − 1)/0.5) and 1 − 2/20 ≥ 0.9
    (WHOLE, RIGHT, 1, (sigmoid(2) + 1) / 2, 1),
    # F1 of o_r 2/3, of o_e 0, of o_f 1
    (WHOLE, {"rationale": "Bell", "evidence": ""}, 5 / 9, (sigmoid(2) + 1) / 2, 1),
    # L_e = 5: L_r < L_e, σ((1 − 5/4)/0.5); 1 − 5/20 = 0.75 < 0.9, 0.75^0.5
    (WHOLE.replace("e f", "e f g h i"), RIGHT, 1, (sigmoid(-0.5) + 0.75**0.5) / 2, 1),
    # longer than the passages
    (WHOLE.replace("e f", "x " * 30), RIGHT, 1, sigmoid((1 - 30 / 4) / 0.5) / 2, 1),
    (WHOLE.replace("e f", " "), RIGHT, 1, (0 + 1) / 2, 1),  # L_e = 0: eq. 7 as printed
    (WHOLE.replace("a b c d", ""), RIGHT, 1, (0 + 1) / 2, 1),  # L_r = 0
    ("Ann Bell", None, 0, 0, 0),  # all tags missing: nothing to probe
    (WHOLE.replace("<answer>Ann Bell</answer>", ""), RIGHT, 2 / 3, (sigmoid(2) + 1) / 2, 0),
    (WHOLE + "<extract>e f</extract>", RIGHT, 1, (sigmoid(2) + 1) / 2, 0),
    (WHOLE.replace("reason>", "think>"), RIGHT, 1, (0 + 1) / 2, 0),
]


def test_eviomni(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    rows = [
        row([(M, text)], passages=SHOWN, **({"probes": probes} if probes else {}))
        for text, probes, *_ in EVIOMNI
    ]
    found = run("eviomni", rows, tmp_path, capsys)
    for got, (_, _, answer, length, form) in zip(found, EVIOMNI, strict=True):
        parts = {"answer": answer, "length": length, "format": form}
        check(got, parts, 0.8 * answer + 0.1 * length + 0.1 * form, bool(form))


MARKED = "* Ann Bell wrote it.\n- The year is unclear."
EVINOTE: list[tuple[Turns, float, float, float, float, float, bool]] = [
    # answer, entailment, format, notes, total
    (noted(MARKED, answer="Ann Bell", tag="summary"), 1, 0.75, 1, 1, 1.75, True),
    (noted("Ann Bell.", answer="Ann Bell", tag="summary"), 1, 0.75, 1, 0, 1.75, True),
    (noted(MARKED, tag="summary"), 0, 0.75, 1, 1, 0.85, True),
    (noted("* only a key fact", tag="summary"), 0, 0.75, 1, 0, 0, True),
    (noted("- only a doubt", tag="summary"), 0, 0.75, 1, 0, 0, True),
    (noted("* a well-known 1990-1995 fact", tag="summary"), 0, 0.75, 1, 0, 0, True),
    ([(M, "<answer>Ann Bell</answer>")], 1, 0.75, 0, 0, 0, True),  # no note at all: nothing was searched for
    ([SEARCH, RESULT, (M, "<answer>Ann Bell</answer>")], 1, 0.75, 0, 0, 0, False),
    ([SEARCH, RESULT, (M, f"<summary>{MARKED}<answer>Ann Bell</answer>")], 1, 0.75, 0, 0, 0, False),
    ([*noted(MARKED, answer="Ann Bell", tag="summary"), ANN], 1, 0.75, 0, 1, 0, False),
    ([(M, "Ann Bell")], 0, 0.75, 0, 0, 0, False),
    # the environment's note and marks are nobody's
    ([SEARCH, (E, f"<summary>{MARKED}</summary>"), ANN], 1, 0.75, 0, 0, 0, False),
]


def test_evinote_rag(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    found = run("evinote-rag", [row(turns, entailment=0.75) for turns, *_ in EVINOTE], tmp_path, capsys)
    for got, (_, answer, entailment, form, notes, total, valid) in zip(found, EVINOTE, strict=True):
        parts = {"answer": answer, "entailment": entailment, "format": form, "notes": notes}
        check(got, parts, total, valid)


CORPUS = [
    {"id": "g", "title": "Emma", "text": "Emma is a novel by Ann Bell."},
    {"id": "o", "title": "Tea", "text": "Tea is a drink."},
]
HIT = (E, '<information>Doc 1(Title: "Emma") Emma is …</information>')
MISS = (E, "<information>Doc 1(Title: Tea) Tea is a drink.</information>")
BACK = (M, "<think>t</think><backtrack/>")
REFUSE = (M, "<think>t</think><refuse>nothing</refuse>")


def asks(query: str) -> tuple[str, str]:
    return M, f"<think>t</think><search>{query}</search>"


def says(answer: str) -> tuple[str, str]:
    return M, f"<think>t</think><answer>{answer}</answer>"


TEA, EMMA, AGAIN = asks("tea leaf"), asks("emma"), {"retrieval": -1.0, "overlap": -1.0}
# Per step the raw rewards that are not 0, r_step = −1 apart.
EVO_RAG: list[tuple[Turns, list[dict[str, float]]]] = [
    ([asks("emma novel"), HIT, says("ann bell")], [{"retrieval": 1}, {"answer": 1}]),
    # EM 0, F1 2/3
    ([asks("tea leaf"), MISS, says("Bell")], [{"retrieval": -1}, {"answer": 1 / 3}]),
    # a duplicate: cos = 1; p = 2/20 < 0.3 is free of the action penalty
    ([TEA, MISS, asks("Tea leaf!"), MISS, says("x")], [{"retrieval": -1}, AGAIN, {}]),
    # the sixth of 20 steps is late
    ([TEA, MISS] * 6, [{"retrieval": -1}, *[AGAIN] * 4, AGAIN | {"retrieval_action": -1}]),
    ([BACK, says("x")], [{"backtrack": -1}, {}]),  # nothing to drop
    ([EMMA, HIT, BACK, (E, "(dropped)"), REFUSE], [{"retrieval": 1}, {"backtrack": -1}, {"refusal": -1}]),
    ([asks("tea"), MISS, REFUSE], [{"retrieval": -1}, {"refusal": 1}]),
    ([asks("emma"), HIT, REFUSE], [{"retrieval": 1}, {"refusal": -1}]),  # it was answerable
    ([(M, "hello"), (E, "Again."), says("Ann Bell")], [{}, {"answer": 1}]),
    ([], []),
]


@pytest.mark.parametrize("stage", [1, 2])
def test_evo_rag(stage: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    table = {
        "retrieval": (2.0, 1.0, 0.5),
        "retrieval_action": (1.5, 0.8, 0.4),
        "overlap": (0.1, 0.5, 1.2),
        "backtrack": (0.3, 0.5, 1.0),
        "refusal": (0.5, 0.5, 0.5),
        "step": (0.02, 0.05, 0.10),
        "answer": (0.05, 0.10, 1.00),
    }
    rows = [row(turns, passages=CORPUS, gold_ids=["g"]) for turns, _ in EVO_RAG]
    settings = ("reward.encoder=lexical", f"reward.curriculum.stage={stage}")
    for got, (_, steps) in zip(run("evo-rag", rows, tmp_path, capsys, *settings), EVO_RAG, strict=True):
        assert len(got["parts"]) == len(steps)
        total = 0.0
        for number, (step, raw) in enumerate(zip(got["parts"], steps, strict=True), 1):
            expected = dict.fromkeys(PARTS, 0.0) | {"step": -1.0} | raw
            p = number / 20
            weights = {part: (1 - p) * w[stage - 1] + p * w[stage] for part, w in table.items()}
            assert {part: step[part] for part in PARTS} == pytest.approx(expected)
            assert step["weights"] == pytest.approx(weights)
            total += sum(weights[part] * expected[part] for part in PARTS)
        assert got["total"] == pytest.approx(total)
