"""Text → terms: the one analyser of this room, used for passages and for queries alike.

Letters and digits make words; case, accents and English endings are folded. Stop words are kept in
the index and dropped from queries, so that "The Who" or "to be or not to be" still finds something:
a query that would lose every word keeps them all.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tantivy import TextAnalyzer

ANALYSER = "english-1"
"""Name and version; an index built by another one cannot be searched with this one."""

LONGEST_WORD = 80
"""Bytes; longer runs of letters are encoded data rather than words, and are not indexed."""

# Lucene's English list, then what only phrases a question or is left of a contraction: those words
# are common in questions and rare in passages, so their rarity would outweigh the names asked about.
_STOP_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they this
to was will with
what which who whom whose when where how why did does do has have had been were from than
s t d ll re ve m
"""
STOP_WORDS = tuple(_STOP_WORDS.split())

_SURROGATE = re.compile("[\ud800-\udfff]")
# Scripts written without spaces: Thai to Myanmar, Khmer, kana, Han, and the supplementary Han planes.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
_PROBE = (
    "The Naïve engineers' running U.S. cafe\u0301s, 3.14 Straße ﬁnds 東京 and Éowyn hadn't been generalised"
)


def valid(text: str) -> str:
    """`text` as it can be stored: lone surrogates, which no encoding of Unicode can hold, become U+FFFD."""
    try:
        text.encode()  # ten times as fast as looking for them
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def folded(text: str) -> str:
    """`text` as it enters the analyser.

    Composed and decomposed accents, ligatures and full-width forms become one spelling, and each
    character of a script written without spaces becomes a word: a whole sentence would be one term.
    """
    if text.isascii():
        return text
    return _UNSPACED.sub(r" \1 ", unicodedata.normalize("NFKC", valid(text)))


@cache
def analyser(*, keep_stop_words: bool = True) -> TextAnalyzer:
    """The analyser, as registered with the index or without the stop words. Takes `folded` text."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    builder = TextAnalyzerBuilder(Tokenizer.simple())
    for step in (Filter.remove_long(LONGEST_WORD), Filter.lowercase(), Filter.ascii_fold()):
        builder = builder.filter(step)
    if not keep_stop_words:
        builder = builder.filter(Filter.custom_stopword(list(STOP_WORDS)))
    return builder.filter(Filter.stemmer("english")).build()


def terms(text: str) -> list[str]:
    """Every term of a passage, in order, repeats included."""
    return list(analyser().analyze(folded(text)))


def query_terms(text: str) -> list[str]:
    """The distinct terms of a query, in order of first appearance.

    Without stop words, unless it holds nothing else. Distinct, because a word that a long question
    repeats is no more important to it (on HotpotQA train, counting repeats costs 0.01 of recall@5).
    """
    ready = folded(text)
    found = analyser(keep_stop_words=False).analyze(ready) or analyser().analyze(ready)
    return list(dict.fromkeys(found))


@cache
def fingerprint() -> str:
    """Hash of what the analyser makes of a fixed text; differs if a library changed its rules."""
    made = " ".join([*terms(_PROBE), "|", *query_terms(_PROBE)])
    return hashlib.sha256(made.encode()).hexdigest()[:16]
