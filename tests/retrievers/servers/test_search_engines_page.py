"""Examples of docs/search-engines.md that need no server."""

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "search-engines.md"
LOCAL = r'url="(?!http)'


@pytest.mark.slow
def test_the_examples_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    for name in ("qdrant_client", "pymilvus", "milvus_lite", "torch"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shown = [block for block in blocks if re.search(LOCAL, block)]
    assert len(shown) == 2
    names: dict[str, Any] = {}
    for block in shown:
        exec(compile(block, str(PAGE), "exec"), names)
    assert capsys.readouterr().out == "Marie Curie\nMarie Curie\n"
