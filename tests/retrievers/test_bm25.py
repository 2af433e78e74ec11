"""BM25 on real indexes: scores by hand, any query as plain words, total order, threads, bad indexes."""

import json
import math
import pickle
import random
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25 import BM25, open_index
from sleuth.retrievers.bm25_index import engine
from sleuth.retrievers.bm25_index import index as index_module
from sleuth.retrievers.bm25_index.build import build_index
from sleuth.retrievers.given import Paragraphs
from sleuth.retrievers.index_files import manifest
from sleuth.types import Hit, Passage
from support.damage import overwrite

ENGINE_FILES = ["*.fast", "*.fieldnorm", "*.idx", "*.pos", "*.store", "*.term", "meta.json"]
PASSAGES = [
    Passage("p1", "Hamlet", "Hamlet is a tragedy by William Shakespeare."),
    Passage("p2", "Macbeth", "Macbeth is a shorter tragedy, also by Shakespeare."),
    Passage("p3", "Field", "A field is an area of open land. AND gates are not fields."),
    Passage("p4", "The Who", "The Who are an English rock band: to be or not to be was never sung."),
    Passage("p5", "東京", "東京は日本の首都。 Tokyo is the capital of Japan."),
]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> BM25:
    directory = tmp_path_factory.mktemp("small") / "index"
    build_index(PASSAGES, directory)
    return open_index(directory)


def ids(hits: list[Hit]) -> list[str]:
    return [hit.passage.id for hit in hits]


def built(directory: Path, *passages: Passage) -> BM25:
    build_index(passages, directory)
    return open_index(directory)


def test_scores_by_hand(tmp_path: Path):
    index = built(
        tmp_path / "i", Passage("a", "x", "apple pie"), Passage("b", "apple", "tart"), Passage("c", "y", "z")
    )
    # "text" holds title and text: lengths 3, 2, 2, mean 7/3; "apple" in 2 of 3. "title": lengths 1, in 1 of 3.
    idf_text, idf_title = math.log(1 + 1.5 / 2.5), math.log(1 + 2.5 / 1.5)

    def tf(length: float, mean: float) -> float:
        return 2.2 / (1 + 1.2 * (0.25 + 0.75 * length / mean))

    a, b = idf_text * tf(3, 7 / 3), idf_text * tf(2, 7 / 3)
    hits = replace(index, title_boost=0.0).search(["Apples"], 5)[0]
    assert ids(hits) == ["b", "a"]
    assert [h.score for h in hits] == pytest.approx([b, a], rel=1e-4)
    hits = index.search(["Apples"], 5)[0]
    assert [h.score for h in hits] == pytest.approx([b + 0.3 * idf_title * tf(1, 1), a], rel=1e-4)


@pytest.mark.parametrize(
    ("query", "plain"),
    [
        ("hamlet^", "hamlet"),
        ("hamlet^2 AND (", "hamlet and 2"),
        ('"hamlet tragedy"~3', "hamlet tragedy 3"),
        ("title:hamlet", "title hamlet"),
        ("row:0", "row 0"),
        ("-hamlet +macbeth", "hamlet macbeth"),
        ("* hamlet ?", "hamlet"),
        ("hamlet OR [a TO z] NOT {x}", "hamlet a z x"),
        ("(((hamlet", "hamlet"),
        ("hamlet\\ /macbeth/", "hamlet macbeth"),
        ("hamlet\x00\x00", "hamlet"),
        ("hamlet \ud800 😀", "hamlet"),
    ],
)
def test_query_syntax_is_plain_words(small: BM25, query: str, plain: str):
    found, expected = small.search([query, plain], 10)
    assert found == expected


@pytest.mark.parametrize(
    "query", ["", " \n", "*", "\x00", "😀🏳️‍🌈", "\ud800", "(((", "—", "\u202e", "zyzzyva", "a" * 1000]
)
def test_query_without_a_known_word_finds_nothing(small: BM25, query: str):
    assert small.search([query], 5) == [[]]


def test_stop_words_alone_and_scripts_without_spaces_are_searched(small: BM25):
    found = small.search(["The Who", "to be or not to be", "日本の首都は？"], 1)
    assert [ids(hits) for hits in found] == [["p4"], ["p4"], ["p5"]]
    assert small.search([], 1) == []


def test_huge_queries(small: BM25):
    many = " ".join(f"w{i}" for i in range(20_000))
    assert ids(small.search([f"{many} hamlet"], 5)[0]) == ["p1"]
    assert small.search(["x" * 1_000_000, "é" * 1_000_000, "😀 " * 250_000], 5) == [[], [], []]
    assert ids(small.search(["hamlet " * 150_000], 5)[0]) == ["p1"]


def test_only_the_rarest_terms_of_a_huge_query_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    texts = {"a": "common rare", "b": "common", "c": "common"}
    index = built(tmp_path / "i", *(Passage(name, "", text) for name, text in texts.items()))
    monkeypatch.setattr(index_module, "MAX_TERMS", 1)
    assert ids(index.search(["common rare unknown"], 5)[0]) == ["a"]


def test_ties_are_broken_by_id_whatever_the_order_of_indexing(tmp_path: Path):
    names = [f"p{i:03}" for i in range(300)]
    random.Random(0).shuffle(names)
    index = built(tmp_path / "i", *(Passage(name, "same", "same words") for name in names))
    assert ids(index.search(["words"], 7)[0]) == [f"p{i:03}" for i in range(7)]
    assert ids(index.search(["words"], 300)[0]) == sorted(names)


def test_passages_come_back_exactly(tmp_path: Path):
    text = 'line\r\nbreak\u2028 \\ " \x7f 😀 e\u0301 \ufeff' + "x" * 100_000 + " needle"
    odd = Passage("id/\t\"'", "  Title \x00 ", text)
    hits = built(tmp_path / "i", Passage("a", "", ""), odd).search(["needle"], 3)[0]
    assert [hit.passage for hit in hits] == [odd]


def test_lone_surrogates_are_the_only_change(tmp_path: Path):
    hits = built(tmp_path / "i", Passage("a\ud800", "t\udfff", "needle \ud83d end")).search(["needle"], 1)[0]
    assert hits[0].passage == Passage("a\ufffd", "t\ufffd", "needle \ufffd end")


def words(draw: random.Random, least: int, most: int) -> str:
    """Words out of 200, few common and many rare ones."""
    return " ".join(f"w{int(200 ** draw.random())}" for _ in range(draw.randint(least, most)))


def zipf_corpus(number: int, seed: int) -> list[Passage]:
    """Passages of 5 to 30 words, short enough for exact lengths."""
    draw = random.Random(seed)
    return [Passage(f"{i}", "", words(draw, 5, 30)) for i in range(number)]


@pytest.mark.parametrize("prune_from", [0, 10**9])
@pytest.mark.parametrize("k", [1, 10, 100])
def test_agrees_with_bm25_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, k: int, prune_from: int):
    monkeypatch.setattr(index_module, "PRUNE_FROM", prune_from)
    monkeypatch.setattr(index_module, "LOOK_UP_FROM", 100)
    passages = zipf_corpus(2000, seed=k)
    index = replace(built(tmp_path / "i", *passages), title_boost=0.0)
    draw = random.Random(k)
    queries = [words(draw, 1, 6) for _ in range(40)]
    reference = Paragraphs(tuple(passages), 1.2, 0.75).search(queries, k)
    for ours, theirs in zip(index.search(queries, k), reference, strict=True):
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], rel=1e-4)
        sure = {h.passage.id for h in theirs if h.score > theirs[-1].score * 1.0002}
        assert sure <= set(ids(ours))


def test_batch_equals_one_by_one_and_threads_do_not_matter(tmp_path: Path):
    index = built(tmp_path / "i", *zipf_corpus(500, seed=1))
    queries = [f"w{i % 150} w{i % 7}" for i in range(200)]
    alone = [index.search([query], 5)[0] for query in queries]
    assert index.search(queries, 5) == alone
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda query: index.search([query], 5)[0], queries)) == alone


def test_is_plain_config(small: BM25):
    assert small == BM25(path=small.path)
    assert hash(small) == hash(BM25(path=small.path))
    assert asdict(small) == {"path": small.path, "title_boost": 0.3}
    assert repr(BM25()) == "BM25(path='', title_boost=0.3)"
    copy = pickle.loads(pickle.dumps(small))
    assert copy == small
    assert copy.search(["hamlet"], 1) == small.search(["hamlet"], 1)
    assert replace(BM25(), path=small.path).search(["hamlet"], 1) == small.search(["hamlet"], 1)


def test_identity_names_what_a_result_depends_on(small: BM25):
    identity = small.identity()
    saved = json.loads((Path(small.path) / "manifest.json").read_text())
    assert identity["index"] == saved["sha256"]
    assert identity["engine"] == "tantivy"
    assert identity["engine_version"]
    assert (identity["k1"], identity["b"], identity["title_boost"]) == ("1.2", "0.75", "0.3")
    assert identity["analyser"].startswith("english-2/")


def only(directory: Path, pattern: str) -> Path:
    return next(directory.glob(f"index-*/{pattern}"))


def cut(directory: Path) -> None:
    file = only(directory, "*.store")
    overwrite(file, file.read_bytes()[:-10])


def spoil(file: Path) -> None:
    """Change the first byte but not the size."""
    data = file.read_bytes()
    overwrite(file, bytes([data[0] ^ 1]) + data[1:])


def edit(**values: object) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        path = directory / "manifest.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | values))

    return change


BREAKAGES: list[tuple[Callable[[Path], object], str]] = [
    (shutil.rmtree, "does not exist"),
    (lambda d: (d / "manifest.json").unlink(), "not an index"),
    (lambda d: (d / "manifest.json").write_bytes(b""), "damaged"),
    (lambda d: (d / "manifest.json").write_bytes(b"\xff\xfe{"), "damaged"),
    (lambda d: (d / "manifest.json").write_text('{"name": "app"}'), "not the manifest of a Sleuth index"),
    (edit(format=2), "index format 2, this version reads 3; build the index again"),
    (edit(num_passages="many"), "damaged"),
    (edit(num_passages=6), "5 passages, not 6; build the index again"),
    (edit(analyser="german-1"), "another analyser"),
    (edit(analyser_fingerprint="0"), "another analyser"),
    (edit(generation="gone"), "missing"),
    (edit(generation="a\0b"), "missing"),
    (edit(generation="", files={}), "cannot open"),
    (edit(files={"meta.json": 1}), "damaged"),
    (edit(files={"meta.json": [1, ""]}), "bytes, not 1"),
    (cut, "bytes, not"),
    (lambda d: only(d, "*.term").unlink(), "missing"),
    *((lambda d, name=name: spoil(only(d, name)), "hash mismatch") for name in ENGINE_FILES),
]


@pytest.mark.parametrize(("breakage", "message"), BREAKAGES, ids=range(len(BREAKAGES)))
def test_a_broken_index_is_one_clear_line(tmp_path: Path, breakage: Callable[[Path], object], message: str):
    directory = tmp_path / "index"
    build_index(PASSAGES, directory)
    breakage(directory)
    with pytest.raises(RetrievalError, match=message) as caught:
        open_index(directory)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "no index given: pass --index DIR"),
        ("nowhere", "does not exist"),
        ("a\x00b", "."),
        ("x" * 5000, "."),
        (__file__, "is a file"),
    ],
)
def test_a_path_that_is_no_index(path: str, message: str):
    with pytest.raises(RetrievalError, match=message):
        open_index(path)


def test_small_files_of_a_large_index_are_hashed_at_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    build_index([Passage(f"{i}", "", f"w{i} " * 99) for i in range(99)], tmp_path / "i")
    monkeypatch.setattr(manifest, "READ_WHOLE", 0)
    monkeypatch.setattr(manifest, "READ_ALWAYS", 2000)
    assert only(tmp_path / "i", "*.store").stat().st_size > 2000
    spoil(only(tmp_path / "i", "meta.json"))
    with pytest.raises(RetrievalError, match=r"meta\.json: damaged \(hash mismatch\)"):
        open_index(tmp_path / "i")


@pytest.mark.parametrize("name", ["*.fast", "*.idx", "*.store", "*.term"])
def test_damage_to_a_large_file_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    build_index(PASSAGES, tmp_path / "i")
    monkeypatch.setattr(manifest, "READ_WHOLE", 0)
    monkeypatch.setattr(manifest, "READ_ALWAYS", 0)
    file = only(tmp_path / "i", name)
    overwrite(file, bytes(file.stat().st_size))  # tantivy would abort on some lengths that are too large
    with pytest.raises(RetrievalError, match="build the index again") as caught:
        open_index(tmp_path / "i").search(["hamlet wrote", "denmark"], 3)
    assert "\n" not in str(caught.value)


def test_opens_where_it_may_not_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    build_index(PASSAGES, tmp_path / "i")
    before = sorted(p.name for p in (tmp_path / "i").rglob("*"))
    monkeypatch.setattr(engine.os, "access", lambda path, mode: False)
    assert ids(open_index(tmp_path / "i").search(["hamlet"], 1)[0]) == ["p1"]
    assert sorted(p.name for p in (tmp_path / "i").rglob("*")) == before
