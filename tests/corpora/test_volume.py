"""Estimates of how much a corpus holds."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from sleuth.corpora import open_corpora, volume
from sleuth.corpora.volume import Volume
from sleuth.corpora.volume import volume as volume_of


def lines(number: int) -> bytes:
    return b"".join(b'{"id":"%d","text":"word%d"}\n' % (i, i * 7919) for i in range(number))


def estimated(*paths: Path) -> Volume | None:
    return volume_of(open_corpora([str(path) for path in paths]))


def test_a_small_file_is_counted(tmp_path: Path):
    (tmp_path / "a.jsonl").write_bytes(b"\n" + lines(20) + b"\n")
    assert estimated(tmp_path / "a.jsonl") == Volume(20, len(lines(20)) + 2)


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", partial(lzma.compress, preset=0))],
)
def test_a_long_file_is_estimated_from_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, pack: Callable[[bytes], bytes]
):
    monkeypatch.setattr(volume, "SAMPLE", 1 << 20)
    data = lines(100_000)
    path = tmp_path / f"a.jsonl{suffix}"
    path.write_bytes(pack(data))
    found = estimated(path)
    assert found is not None
    assert found.num_passages == pytest.approx(100_000, rel=0.5)  # bz2 and xz are read in large blocks
    assert found.num_bytes == pytest.approx(len(data), rel=0.5)


def test_a_folder_of_text_and_sources_together(tmp_path: Path):
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "a.md").write_text("x" * 1301)
    (tmp_path / "notes" / "deep" / "b.txt").write_text("y")
    (tmp_path / "c.jsonl").write_bytes(lines(5))
    assert estimated(tmp_path / "notes") == Volume(3 + 1, 1302)
    assert estimated(tmp_path / "notes", tmp_path / "c.jsonl") == Volume(9, 1302 + len(lines(5)))


def test_an_unknown_size(tmp_path: Path):
    (tmp_path / "a.pdf").write_bytes(b"%PDF")
    (tmp_path / "b.jsonl.gz").write_bytes(b"damaged")
    (tmp_path / "c.jsonl").write_bytes(lines(5))
    assert estimated(tmp_path / "a.pdf") is None
    assert estimated(tmp_path / "b.jsonl.gz") is None
    assert estimated(tmp_path / "c.jsonl", tmp_path / "b.jsonl.gz") is None
    assert volume_of(open_corpora(["factbook"])) is None
