import re

import pytest

from sleuth import factbook
from sleuth.corpora.factbook import FactbookCorpus
from sleuth.errors import ConfigError

PASSAGES = list(FactbookCorpus().passages(print))


def test_the_whole_book_is_there():
    assert len(factbook.entries()) > 30_000
    assert len({e.code for e in factbook.entries()}) > 240
    assert sum(len(p.text.split()) for p in PASSAGES) > 750_000


def test_ids_are_unique_and_readable():
    assert len({p.id for p in PASSAGES}) == len(PASSAGES)
    assert all(re.fullmatch(r"[a-z]{2}/[a-z0-9-]+", p.id) for p in PASSAGES)
    titles = {p.id: p.title for p in PASSAGES}
    assert titles["fr/capital"] == "France: Capital"
    assert titles["kn/capital"] == "North Korea: Capital"
    assert titles["bf/capital"] == "The Bahamas: Capital"


def test_passages_are_short_and_clean():
    for passage in PASSAGES:
        assert 0 < len(passage.text.split()) <= factbook.MAX_WORDS
        assert not re.search(r"<[a-z/]|&[a-z]+;|\u00a0|\s\s", passage.text), passage
        assert passage.title.count(":") >= 1


def test_sub_fields_are_named():
    by_id = {p.id: p.text for p in PASSAGES}
    assert by_id["uv/capital"].startswith("name: Ouagadougou; geographic coordinates: 12 22 N")


def test_no_word_is_lost_by_cutting():
    for entry in factbook.entries()[:2000]:
        pieces = [p.text for p in factbook.passages_of(entry, 20)]
        assert " ".join(pieces).split() == entry.text.split()
        assert all(len(piece.split()) <= 20 for piece in pieces)


def test_clean():
    assert factbook.clean("<p>A&nbsp;&amp; <b>B</b><br>C&eacute;</p>") == "A & B Cé"
    assert factbook.clean("&lt;script&gt;x&lt;/script&gt;") == "x"


def test_bad_setting():
    with pytest.raises(ConfigError, match="max_words"):
        FactbookCorpus(max_words=0)
