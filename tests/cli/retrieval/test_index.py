"""sleuth index: building, forecast, adding, replacing, deleting, the Wikipedia dump, what it refuses."""

import json
from pathlib import Path

import pytest

from sleuth.retrievers.bm25 import open_index
from support.command import run
from support.damage import overwrite

Capture = pytest.CaptureFixture[str]


def written(path: Path, *records: tuple[str, str]) -> Path:
    path.write_text("".join(json.dumps({"id": i, "title": "", "text": text}) + "\n" for i, text in records))
    return path


def found(directory: Path, query: str) -> list[str]:
    return sorted(hit.passage.id for hit in open_index(directory).search([query], 9)[0])


@pytest.fixture
def index(tmp_path: Path, capsys: Capture) -> Path:
    source = written(tmp_path / "a.jsonl", ("a", "apple"), ("b", "banana"), ("c", "cherry"))
    assert run(capsys, "index", source, "-o", tmp_path / "i", "--json")[0] == 0
    return tmp_path / "i"


def test_forecast_and_summary(tmp_path: Path, capsys: Capture):
    source = written(tmp_path / "a.jsonl", ("a", "apple"), ("b", "banana"))
    code, out, err = run(capsys, "index", source, "-o", tmp_path / "i")
    assert code == 0
    assert out.startswith(f"2 passages indexed in {tmp_path / 'i'} (0 records skipped)\ntry: sleuth search")
    assert err.startswith("sleuth: about 2 passages in 1 MB: up to 161 MB of memory and 1 MB of disk (")
    assert err.count("\n") == 1
    _, out, err = run(capsys, "index", source, "-o", tmp_path / "i", "--json")
    assert (json.loads(out)["passages"], err) == (2, "")


def test_a_disk_that_is_small_is_reported(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch):
    from sleuth.retrievers import forecast

    monkeypatch.setattr(forecast, "free_bytes", lambda directory: 10)
    _, _, err = run(capsys, "index", written(tmp_path / "a.jsonl", ("a", "apple")), "-o", tmp_path / "i")
    assert f"the disk of {tmp_path / 'i'} may be too small" in err


def test_add(tmp_path: Path, index: Path, capsys: Capture):
    more = written(tmp_path / "b.jsonl", ("b", "blueberry"), ("d", "date"))
    code, out, err = run(capsys, "index", more, "-o", index, "--add", "--json")
    assert code == 0
    assert json.loads(out) == {"index": str(index), "passages": 4, "added": 1, "replaced": 0, "skipped": 1}
    assert err == "sleuth: 1 passage left out, since an earlier one has the id: b\n"
    assert (found(index, "blueberry"), found(index, "date banana")) == ([], ["b", "d"])


def test_replace(tmp_path: Path, index: Path, capsys: Capture):
    more = written(tmp_path / "b.jsonl", ("b", "blueberry"), ("d", "date"))
    code, out, _ = run(capsys, "index", more, "-o", index, "--replace")
    line = f"2 passages added to {index}, 1 of them in place of others; it holds 4 (0 records skipped)"
    assert (code, out.partition("\n")[0]) == (0, line)
    assert (found(index, "blueberry date"), found(index, "banana")) == (["b", "d"], [])


def test_delete(tmp_path: Path, index: Path, capsys: Capture):
    code, out, err = run(capsys, "index", "-o", index, "--delete", "a", "nobody", "--json")
    assert code == 0
    assert json.loads(out) == {"index": str(index), "passages": 2, "deleted": 1, "unknown": 1}
    assert err == "sleuth: 1 id of no passage: nobody\n"
    (tmp_path / "ids").write_text("b\n\n c \n")
    code, out, _ = run(capsys, "index", "-o", index, "--delete-file", tmp_path / "ids")
    assert (code, out) == (0, f"2 passages deleted from {index}; it holds 0\n")
    assert found(index, "apple banana cherry") == []


def test_wiki18_takes_either_dump(tmp_path: Path, capsys: Capture):
    dump, lines = tmp_path / "psgs_w100.tsv", tmp_path / "wiki-18.jsonl"
    dump.write_text('id\ttext\ttitle\n1\t"Aaron said ""yes""."\tAaron\n')
    lines.write_text('{"id": "1", "contents": "\\"Aaron\\"\\nAaron said \\"yes\\"."}\n')
    for source in (dump, lines):
        assert run(capsys, "index", "--wiki18", source, "-o", tmp_path / source.stem, "--json")[0] == 0
        hits = open_index(tmp_path / source.stem).search(["Aaron"], 1)[0]
        assert (hits[0].passage.title, hits[0].passage.text) == ("Aaron", 'Aaron said "yes".')


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to index: name a SRC"),
        (["--add"], "nothing to index"),
        (["a.jsonl", "--delete", "a"], "--delete takes no SRC"),
        (["--wiki18", "x.tsv", "--delete", "a"], "--delete takes no SRC"),
        (["a.jsonl", "--add", "--replace"], "not allowed with"),
        (["a.jsonl", "--add", "--delete", "a"], "not allowed with"),
        (["--wiki18", "psgs_w100.tsv"], "wiki-18-corpus"),
        (["--delete", "a"], "does not exist"),
        (["--verify"], "does not exist"),
        (["a.jsonl", "--verify"], "--verify takes no SRC"),
        (["a.jsonl", "--delete-file", "x"], "--delete-file takes no SRC"),
        (["--compact"], "does not exist"),
        (["--verify", "--dense", "minilm"], "--dense has no use with --verify"),
        (["--compact", "--strict"], "--strict has no use with --compact"),
        (["--delete-file", "none"], "no file none"),
        (["a.jsonl", "--add"], "does not exist"),
    ],
)
def test_refused_in_one_line_and_nothing_is_left(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, arguments: list[str], message: str
):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "a.jsonl", ("a", "apple"))
    code, out, err = run(capsys, "index", *arguments, "-o", "i", "--json")
    assert (code != 0, out) == (True, "")
    assert message in err
    assert err.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["a.jsonl"]


def test_ids_that_are_not_text(tmp_path: Path, index: Path, capsys: Capture):
    (tmp_path / "ids").write_bytes(b"a\n\xff\n")
    code, _, err = run(capsys, "index", "-o", index, "--delete-file", tmp_path / "ids")
    assert (code, err) == (1, f"sleuth: {tmp_path / 'ids'}:2: id: not UTF-8\n")
    assert found(index, "apple") == ["a"]


def test_unusable_records_are_named_and_strict_stops(tmp_path: Path, capsys: Capture):
    source = tmp_path / "a.jsonl"
    source.write_text(
        '{"id": "a", "text": "apple"}\n{"id": "b"}\n{"id": "c", "text": \n{"text": "x"}\n{"id": "a", "text": "again"}\n'
    )
    code, out, err = run(capsys, "index", source, "-o", tmp_path / "i", "--json")
    assert code == 0
    assert json.loads(out) == {"index": str(tmp_path / "i"), "passages": 1, "skipped": 4}
    *lines, last = err.splitlines()
    reasons = ["text: missing", "record: not JSON", "id: missing"]
    for number, (line, reason) in enumerate(zip(lines, reasons, strict=True), 2):
        assert line.startswith(f"sleuth: skipped {source}:{number}: {reason}")
    assert last == "sleuth: 1 passage left out, since an earlier one has the id: a"
    code, _, err = run(capsys, "index", source, "-o", tmp_path / "strict", "--strict", "--json")
    assert (code, err.count("\n")) == (1, 1)
    assert f"{source}:2: text: missing" in err


def test_files_of_other_types_are_counted(tmp_path: Path, capsys: Capture):
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("apple")
    for name in ("b.docx", "c.DOCX", "d.jsonl", "LICENSE", ".hidden"):
        (folder / name).write_text("x")
    code, out, err = run(capsys, "index", folder, "-o", tmp_path / "i", "--strict", "--json")
    assert (code, json.loads(out)["skipped"]) == (0, 0)
    left_out = ".docx (2), no suffix (1), .jsonl (1)"
    assert err == f"sleuth: 4 files of other types left out: {left_out}\n"


def test_old_vectors_are_noticed_after_a_change(index: Path, capsys: Capture):
    (index / "dense").mkdir()
    (index / "dense" / "manifest.json").write_text('{"kind": "sleuth-dense", "format": 1}')
    _, _, err = run(capsys, "index", "-o", index, "--delete", "a", "--json")
    assert "index format 1, this version reads 3; build the index again" in err


def test_nothing_is_left_to_make_vectors_of(index: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch):
    class Any:
        dimension, remark = 2, ""

        def open(self) -> None: ...

    monkeypatch.setattr("sleuth.encoders.by_name.open_encoder", lambda name: Any())
    code, out, err = run(capsys, "index", "-o", index, "--delete", "a", "b", "c", "--dense", "any")
    assert (code, out) == (0, f"3 passages deleted from {index}; it holds 0\n")
    assert err == f"sleuth: {index} holds no passages now, so there is nothing to make vectors of\n"


def test_verify(index: Path, capsys: Capture):
    code, out, _ = run(capsys, "index", "-o", index, "--verify", "--json")
    assert (code, json.loads(out)["passages"]) == (0, 3)
    assert json.loads(out)["sha256"] == open_index(index).identity()["index"]
    (index / "dense" / "index-1").mkdir(parents=True)
    code, out, err = run(capsys, "index", "-o", index, "--verify")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "have lost their manifest.json" in err
    file = next(index.glob("index-*/*.idx"))
    overwrite(file, bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])
    code, out, err = run(capsys, "index", "-o", index, "--verify")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "damaged (hash mismatch); build the index again" in err


def test_compact(index: Path, capsys: Capture):
    assert run(capsys, "index", "-o", index, "--delete", "b")[0] == 0
    code, out, _ = run(capsys, "index", "-o", index, "--compact", "--json")
    assert (code, json.loads(out)) == (0, {"index": str(index), "passages": 2})
    assert not any(b"banana" in file.read_bytes() for file in index.glob("index-*/*.store"))
    assert found(index, "apple banana cherry") == ["a", "c"]
    assert run(capsys, "index", "-o", index, "--delete", "a", "c")[0] == 0
    code, _, err = run(capsys, "index", "-o", index, "--compact")
    assert (code, err.count("\n")) == (1, 1)
    assert "no passages to index" in err
