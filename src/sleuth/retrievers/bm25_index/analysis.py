"""Terms of a text, made alike for passages and queries.

Letters and digits make words; case, accents and English endings are folded. Stop words are kept in
the index and dropped from queries, so that "The Who" or "to be or not to be" still finds something:
a query that would lose every word keeps them all.
"""

import hashlib
import re
import unicodedata
from functools import cache

from tantivy import Filter, TextAnalyzer, TextAnalyzerBuilder, Tokenizer

from sleuth.text import valid_unicode

ANALYSER = "english-2"  # Name and version; an index built by another one cannot be searched with this one.

LONGEST_WORD = 80  # Bytes; longer runs of letters are encoded data rather than words, and are not indexed.

# Lucene's English list, then question words and remains of contractions: those are common in questions
# and rare in passages, so their rarity would outweigh the names in the question.
_STOP_WORDS = """
a an and are as at be but by for if in into is it no not of on or such that the their then there these they this
to was will with
what which who whom whose when where how why did does do has have had been were from than
s t d ll re ve m
"""
STOP_WORDS = tuple(_STOP_WORDS.split())

# Scripts written without spaces: Thai to Myanmar, Khmer, kana, Han, and the supplementary Han planes.
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
# Inside a word, yet no letter of it: Unicode divides no word there (UAX #29), and the ICU folding of Lucene and
# OpenSearch drops them too, so that ё is е and й is и as å is a. Not here: U+200B, which does divide words (Thai,
# Khmer), and marks that make another letter: the vowels of India's scripts, and the voicing of kana.
_NO_LETTER = re.compile(
    "["
    "\u00ad\u061c\u180b-\u180f\u200c-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"  # invisible: soft hyphen …
    "\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"  # accents
    "\u0483-\u0489\u2de0-\u2dff\ua66f-\ua672\ua674-\ua67d"  # Cyrillic
    "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"  # Hebrew points
    "\u0610-\u061a\u0640\u064b-\u065f\u0670"  # Arabic points, and the line that stretches a word
    "\u093c\u094d\u09bc\u09cd\u0a3c\u0a4d\u0abc\u0acd\u0b3c\u0b4d\u0bcd"  # nukta and virama, Devanagari to Tamil
    "\u0c3c\u0c4d\u0cbc\u0ccd\u0d3b\u0d3c\u0d4d\u0dca"  # and Telugu to Sinhala
    "]+"
)
# Text with no such character and only accents that tantivy folds itself: most English text that is not ASCII.
_LATIN = re.compile("[\x00-\xac\xae-\u012f\u0131-\u017f\u1e00-\u1eff\u2010-\u2027\u2030-\u205e]*")
# A run of marks, cut at 30 as in Unicode's stream-safe format (UAX #15): normalising sorts it, in quadratic time.
# U+FF9E and U+FF9F count as word characters, but decompose to marks.
_MARK = "(?:[^\\w\\s]|[\uff9e\uff9f])"
_LONG_RUN = re.compile(f"([^\x00-\u02ff\\w\\s]{_MARK}{{29}}){_MARK}+")
_PROBE = (
    "The Naïve engineers' running U.S. cafe\u0301s, 3.14 Straße ﬁnds 東京 and Éowyn hadn't been generalised "
    "İzmir co\u00adop Ῥόδος ёлка हिन्दी"
)


def folded(text: str) -> str:
    """`text` prepared for the analyser.

    Ligatures and full-width forms become one spelling, accents and invisible characters go, and each
    character of a script written without spaces becomes a word: a whole sentence would be one term.
    """
    if text.isascii():
        return text
    text = valid_unicode(text)
    if _LATIN.fullmatch(text):
        return unicodedata.normalize("NFKC", text)
    letters = _NO_LETTER.sub("", unicodedata.normalize("NFKD", _LONG_RUN.sub(r"\1", text)))
    # Final sigma is a small sigma of its own, which ΟΔΟΣ does not become in lower case.
    return _UNSPACED.sub(r" \1 ", unicodedata.normalize("NFC", letters).replace("ς", "σ"))


@cache
def analyser(*, keep_stop_words: bool = True) -> TextAnalyzer:
    """The analyser, as registered with the index or without the stop words. Takes `folded` text."""
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
