"""How well-known encoders want queries and passages written, and where they are found.

A model trained with a prefix loses quality without it, and one trained without loses with it: a
name that is not in this table gets none, and its user is told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_BGE = "Represent this sentence for searching relevant passages: "
_BGE_CHINESE = "为这个句子生成表示以用于检索相关文章："


@dataclass(frozen=True, slots=True)
class Family:
    """Encoders that are used alike. A name fits by its last part, in lower case, whole."""

    pattern: str
    """Regular expression."""
    owner: str
    """On the Hugging Face hub, of names given without one."""
    query_prefix: str = ""
    passage_prefix: str = ""
    normalised: bool = True
    """False: trained for the inner product of vectors of any length."""
    joint: str = "\n"
    """Between a passage's title and text."""
    query_model: tuple[str, str] = ("", "")
    """(pattern, replacement) that turns the passage model's name into that of a model for queries."""


FAMILIES = (
    # Wang et al. 2022, model cards: the prefixes are part of training, cosine.
    Family(r"(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?", "intfloat", "query: ", "passage: "),
    # Xiao et al. 2023, model cards: an instruction before queries only; m3 wants none.
    Family(r"bge-(small|base|large)-en(-v1\.5)?", "BAAI", _BGE),
    Family(r"bge-(small|base|large)-zh(-v1\.5)?", "BAAI", _BGE_CHINESE),
    Family(r"bge-m3", "BAAI"),
    # Karpukhin et al. 2020: two models, first token's state, inner product; title [SEP] text.
    Family(
        r"facebook-dpr-ctx_encoder-(single-nq|multiset)-base",
        "sentence-transformers",
        normalised=False,
        joint=" [SEP] ",
        query_model=("dpr-ctx_encoder", "dpr-question_encoder"),
    ),
    Family(r"all-(minilm-l(6|12)|mpnet-base)-v[12]", "sentence-transformers"),
    Family(r"multi-qa-(minilm-l6|mpnet-base)-cos-v1", "sentence-transformers"),
    Family(r"gte-(small|base|large)", "thenlper"),
    # Izacard et al. 2022: mean of the states, inner product.
    Family(r"contriever(-msmarco)?", "facebook", normalised=False),
)

SHORT = {
    "dpr": "sentence-transformers/facebook-dpr-ctx_encoder-single-nq-base",
    "facebook/dpr-ctx_encoder-single-nq-base": "sentence-transformers/facebook-dpr-ctx_encoder-single-nq-base",
    "facebook/dpr-ctx_encoder-multiset-base": "sentence-transformers/facebook-dpr-ctx_encoder-multiset-base",
}
"""Names → the same weights as sentence-transformers loads them with the right pooling."""


def family_of(name: str) -> Family | None:
    """The family of a hub name or a folder, by its last part; None if it is not known."""
    last = Path(SHORT.get(name, name)).name.lower()
    return next((family for family in FAMILIES if re.fullmatch(family.pattern, last)), None)


def full_name(name: str) -> str:
    """`name` with the owner that its family is published under, where none is given."""
    name = SHORT.get(name, name)
    family = family_of(name)
    if family is None or "/" in name or Path(name).exists():
        return name
    return f"{family.owner}/{name}"
