"""sleuth search over what is no index of ours, and the settings of a retriever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sleuth.cli import main
from sleuth.types import Passage
from support.towns import write_towns


def test_a_search_engine_is_searched_at_its_address(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("qdrant_client")
    from sleuth.retrievers.servers.qdrant import Qdrant

    where = str(tmp_path / "engine")
    Qdrant(url=where, collection="towns").upload([Passage("p", "Arlen", "The mayor is Mr Arlenson.")])
    command = [
        "search",
        where,
        "who is mayor",
        "--retriever",
        "qdrant",
        "--set",
        "collection=towns",
        "--json",
    ]
    assert main(command) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["id"], found["title"]) == ("p", "Arlen")


def test_settings_are_the_retrievers_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = str(write_towns(tmp_path) / "index")
    scores = {}
    for boost in ("0", "2"):
        command = ["search", index, "mayor Brill", "--retriever", "bm25", "--set", f"title_boost={boost}"]
        assert main([*command, "--json"]) == 0
        scores[boost] = json.loads(capsys.readouterr().out)[0]["score"]
    assert scores["2"] > scores["0"]


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--retriever", "qdrnt"], "did you mean 'qdrant'?"),
        (["--retriever", "bm25", "--set", "title_bost=1"], "did you mean 'title_boost'?"),
        (["--set", "title_boost=1"], "--set needs --retriever"),
        (["--retriever", "bm25", "--set", "path=/elsewhere"], ""),
    ],
)
def test_one_line_for_what_cannot_be(
    options: list[str], line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["search", str(tmp_path / "nowhere"), "who", *options]) == 1
    err = capsys.readouterr().err
    assert line in err
    assert len(err.splitlines()) == 1
