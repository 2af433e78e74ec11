"""Tables: the same cells in every format, each format's own characters escaped, stamps never lost."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.episodes.limits import Limits
from sleuth.evaluation.comparing.compare import compare
from sleuth.evaluation.comparing.tables import Grid, grids, latex, latex_text, markdown

HOSTILE = r"a|b \\ [x] 100% $y$ _u_ {v} #1 & ~ ^ <i> `c` *z* 'q' \"r\""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("EM (%)", r"EM (\%)"),
        ("[0.0, 5.7]", "{[}0.0, 5.7{]}"),
        ("−1.6", "$-$1.6"),
        ("< 0.001", r"\textless{} 0.001"),
        ("a_b\\c", r"a\_b\textbackslash{}c"),
        ("{$x^2$}~#&", r"\{\$x\textasciicircum{}2\$\}\textasciitilde{}\#\&"),
        ("two\nlines\x00\t", "two lines"),
        ("–", "--"),
    ],
)
def test_latex_characters(text: str, expected: str) -> None:
    assert latex_text(text) == expected


@given(st.text(max_size=40))
def test_latex_text_holds_no_command_of_its_own(text: str) -> None:
    # What is left when our own commands, escapes and braces are taken out holds no special character.
    written = latex_text(text)
    for ours in (r"\\[&%$#_{}]", r"\\(?:text\w+|dots)\{\}", r"\{[\[\]]\}", r"\$(?:-|\\pm|\\times)\$"):
        written = re.sub(ours, "", written)
    assert not set(written) & set("\\&%$#_{}~^\n")


def test_a_latex_table() -> None:
    grid = Grid(
        "A & B", ("figure", "system", "n"), (("[EM]", "a_1", "1"), ("", "b", "2"), ("F1", "a_1", "3"))
    )
    written = latex([grid, grid], ["STAMP 5 %"], ["note #1", "note 2"])
    assert written.splitlines() == [
        "% needs \\usepackage{booktabs}",
        r"\begin{table}[t]",
        r"\centering\small",
        r"\textbf{STAMP 5 \%}\par\medskip",
        r"\begin{tabular}{llr}",
        r"\toprule",
        r"figure & system & n \\",
        r"\midrule",
        r"{[}EM{]} & a\_1 & 1 \\",
        r" & b & 2 \\",
        r"\addlinespace",
        r"F1 & a\_1 & 3 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\medskip A \& B\par\smallskip",
        *written.splitlines()[4:14],
        r"\par\smallskip{\footnotesize note \#1; note 2.\par}",
        r"\end{table}",
    ]


def test_a_markdown_table_keeps_its_columns() -> None:
    grid = Grid("t", ("figure", "system", "n"), (("EM", HOSTILE, "1"), ("", "b\nc", "2")))
    lines = markdown([grid], ["S|1"], ["n*1*"]).splitlines()
    assert lines[0] == r"> **S\|1**"
    table = [line for line in lines if line.startswith("|")]
    assert table[:2] == ["| figure | system | n |", "| --- | --- | ---: |"]
    for line in table:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) == 4
    assert "b c" in table[3]
    assert lines[-1] == r"- n\*1\*"


@pytest.fixture(scope="module")
def three(world: Any, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("three")
    asked = world.questions(6, "squad") + world.questions(6, "triviaqa")
    for name, right in (("a", 1), ("b", 3), ("c", 5)):
        limits = Limits(top_k=5 if name == "c" else 3)
        world.run(folder / name, asked, world.knows(lambda i, right=right: i < right), limits=limits)
    return [folder / name for name in "abc"]


def test_one_and_two_systems(three: list[Path]) -> None:
    overall = grids(compare(three[:1]))[0]
    assert overall.title == "1 evaluation on 12 questions"
    assert overall.headers == ("figure", "system", "value", "n")
    assert {len(row) for row in overall.rows} == {4}
    overall, by_dataset = grids(compare(three[:2]))
    assert overall.headers == ("figure", "system", "value", "n", "difference", "p")
    assert by_dataset.headers[-1] == "p (Holm)"
    labels = ["squad: EM (%)", "squad: F1 (%)", "triviaqa: EM (%)", "triviaqa: F1 (%)"]
    assert [row[0] for row in by_dataset.rows] == [text for label in labels for text in (label, "")]


def test_three_systems_and_a_stamp_in_every_format(three: list[Path]) -> None:
    found = compare(three, anyway=True)
    overall = grids(found)[0]
    assert overall.title == "3 evaluations on 12 questions"
    # 2, 6 and 10 of 12 right. Against a: 4 and 8 questions gained, p = 2/16 and 2/256; Holm: 0.125 and 2 · 0.0078.
    assert [row[1:4] + row[5:] for row in overall.rows[:3]] == [
        ("a", "16.7 [0.0, 41.7]", "12", "", ""),
        ("b", "50.0 [25.0, 75.0]", "12", "0.125", "0.125"),
        ("c", "83.3 [58.3, 100.0]", "12", "0.008", "0.016"),
    ]
    stamp = "NOT COMPARABLE: they differ in limits.top_k (a: 3, b: 3, c: 5)"
    assert found.stamps() == found.to_dict()["stamps"] == [stamp]
    assert f"> **{stamp}**".replace("_", "\\_") in markdown(grids(found), found.stamps(), found.notes())
    assert stamp.replace("_", "\\_") in latex(grids(found), found.stamps(), found.notes())
