"""Text rules in one place: answer normalisers, containment, neutralising of untrusted text, valid Unicode, times.

Sources: SQuAD v1.1, TriviaQA and HotpotQA evaluation scripts (definitions only), and
ARENA's released normaliser, which turns punctuation into a space where SQuAD deletes it.
"""

import hashlib
import re
import string
import unicodedata
from typing import Literal
from urllib.parse import quote

Normaliser = Literal["squad", "nq", "triviaqa", "arena"]

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SPACE_PUNCTUATION = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))


def normalise(text: str, rule: Normaliser = "squad") -> str:
    """Reduce an answer to the form in which it is compared.

    squad: lower, delete ASCII punctuation, drop a/an/the, collapse spaces.
    nq: the same after NFD, so that composed and decomposed accents agree.
    triviaqa, arena: underscore and punctuation become a space instead of vanishing.
    """
    if rule == "nq":
        text = unicodedata.normalize("NFD", text)
    table = _SPACE_PUNCTUATION if rule in ("triviaqa", "arena") else _DELETE_PUNCTUATION
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(table)).split())


def contains(text: str, gold: str) -> bool:
    """Whether `gold` occurs in `text` as a run of whole normalised tokens.

    Token-wise, because a substring test finds "no" in "know" and "9" in "19". Golds that are
    yes, no or empty never count: their presence in evidence says nothing.
    """
    return holds(normalise(text), gold)


def holds(normalised: str, gold: str) -> bool:
    """`contains` for a text that is normalised already, to look for many golds in it."""
    needle = normalise(gold)
    return needle not in ("", "yes", "no") and f" {needle} " in f" {normalised} "


# A tag or control token starts with a "<" look-alike that is followed by a name, slash or bar.
# A "<" at the very end counts too, since whatever the environment appends would follow it.
# "x < 5" stays readable; "<answer>", "< /answer>", "<|im_end|>", "<｜User｜>" and full-width forms do not survive.
# Quantifiers are possessive, or one "<" before a page of white space would take minutes.
_OPENING = re.compile(
    r"(?:[<＜﹤]|&lt;|&#0*60;|&#x0*3c;)(?=\s*+(?:[/|｜!?]\s*+)?[^\W\d]|\s*+(?:[/|｜]\s*+)?$)", re.IGNORECASE
)
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def neutralise(text: str) -> str:
    """Untrusted text without tags and control tokens; it stays readable.

    Invisible and bidirectional control characters are removed first, since they can hide a tag
    from the check; then every "<" that could open a tag becomes "‹".
    """
    text = _CONTROL.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _OPENING.sub("‹", text)


def fill(template: str, **values: str) -> str:
    """The template with each "{name}" replaced in one pass, so that a value that holds a slot stays as it is."""
    return re.sub(r"\{(\w+)\}", lambda slot: values.get(slot[1], slot[0]), template)


def valid_unicode(text: str) -> str:
    """`text` with lone surrogates, which no encoding can hold, as U+FFFD."""
    try:
        text.encode()  # ten times as fast as looking for them
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def digest(text: str, size: int = 8) -> bytes:
    """`size` bytes of a BLAKE2b hash of any text, for choices that are the same in every run."""
    return hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=size).digest()


def clock(seconds: float) -> str:
    """A duration as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def passage_url(name: str) -> str:
    """A name of a passage that clients can cite; it cannot be opened."""
    return f"sleuth://passage/{quote(name, safe='')}"


def counted(count: int, noun: str) -> str:
    """A count with its noun: "1 question", "2,000 questions"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
