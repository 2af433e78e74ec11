"""The rules of tools/prose.py: each refuses its examples and nothing near them."""

import runpy
from pathlib import Path

import pytest

PROSE = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "prose.py"))


def found(source: str, name: str = "file.py") -> list[tuple[int, str]]:
    pieces = PROSE["_python" if name.endswith(".py") else "_markdown"](source)
    return sorted((line, fault) for line, kind, text in pieces for fault in PROSE["faults"](kind, text))


@pytest.mark.parametrize(
    ("source", "line", "fault"),
    [
        ('"""Of the lists, those probed."""', 1, "opens with 'Of'"),
        ('x = 1\n"""What the model wrote."""', 2, "opens with 'What'"),
        ("x = 1\n# The rest\n# is told later.\ny = 2", 3, "'told'"),
        ("if x:\n    raise ValueError(f'{x} cannot be had')", 2, "'cannot be had'"),
        ("parser.add_argument('--x', help='the file beside it')", 1, "'beside'"),
        ("def test_who_does_not_read():\n    pass", 1, "holds 'test_who'"),
        ("def f(told):\n    pass", 1, "holds 'told'"),
        ("told_of = 1", 1, "holds 'told'"),
        ('"""A client behind the rest."""', 1, "'behind'"),
        ('"""' + "word " * 29 + '."""', 1, "a sentence of 29 words"),
    ],
)
def test_a_fault_is_reported_with_its_line(source: str, line: int, fault: str) -> None:
    assert [(at, fault in text) for at, text in found(source)] == [(line, True)]


@pytest.mark.parametrize(
    "source",
    [
        '"""Address of a server behind a proxy."""',
        '"""Value that `told` stands for, and "said" too; there is no limit."""',
        '"""Steps.\n\n    told, said, beside: an example\nEnd."""',
        "retold = outstanding = 1",
        'PROMPT = "Tell me what is said beside it."',
        '"""' + "word " * 28 + '. And more."""',
        "x = 1  # noqa: told",
    ],
)
def test_plain_prose_code_and_quotations_pass(source: str) -> None:
    assert found(source) == []


def test_pages_are_read_without_code_and_tables() -> None:
    page = "# Title\n\n```\ntold\n```\n\n| told |\n|---|\n\nA line\nthat goes on.\n"
    assert [line for line, _ in found(page, "page.md")] == [10]
