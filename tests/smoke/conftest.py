"""Eight towns and their mayors, one town without."""

from pathlib import Path

import pytest

from support.towns import questions, write_towns


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    """A folder with corpus.jsonl, train.jsonl, dev.jsonl and index."""
    nobody = {"id": "u", "question": "Who is the mayor of Nowhere?", "answers": [], "answerable": False}
    return write_towns(tmp_path, train=[*questions()[:6], nobody], dev=questions()[6:])
