"""A verb as the command line calls it."""

from pathlib import Path

import pytest

from sleuth.cli import main


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    try:
        code = main([*map(str, arguments)])
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return code, captured.out, captured.err
