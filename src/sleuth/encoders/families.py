"""Prefixes, owners and query models of well-known encoders.

A model trained with a prefix loses quality without it, and one trained without loses with it. A name outside
this table gets no prefix and a warning.
"""

import re
from dataclasses import dataclass
from pathlib import Path

_BGE = "Represent this sentence for searching relevant passages: "
_BGE_CHINESE = "为这个句子生成表示以用于检索相关文章："


@dataclass(frozen=True, slots=True)
class Family:
    """Encoders that share prefixes and similarity."""

    pattern: str  # Regular expression for the last part of a name, in lower case.
    owner: str  # Hugging Face owner of names given without one.
    query_prefix: str = ""
    passage_prefix: str = ""
    normalised: bool = True  # False: trained for the inner product of vectors of any length.
    joint: str = "\n"  # Text between a passage's title and body.
    query_model: tuple[str, str] = ("", "")
    """(old, new) parts of the passage model's name that give the query model's."""


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
"""Name → copy of the same weights that sentence-transformers loads with the right pooling."""


def family_of(name: str) -> Family | None:
    """The family of a hub name or folder, or None if it is unknown."""
    last = Path(SHORT.get(name, name)).name.lower()
    return next((family for family in FAMILIES if re.fullmatch(family.pattern, last)), None)


def full_name(name: str) -> str:
    """`name` with its family's owner if it has none; a folder and an unknown name stay unchanged."""
    name = SHORT.get(name, name)
    family = family_of(name)
    return name if family is None or "/" in name or Path(name).exists() else f"{family.owner}/{name}"
