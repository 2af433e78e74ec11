"""Texts as vectors, and scores for pairs of texts.

base: the interface · lexical: word counts · minilm: all-MiniLM-L6-v2 · sentence: any model of
sentence-transformers (families: their prefixes) · by_name: encoders by name · cross_encoder: query and
passage read together · loading: quiet loading with one-line errors.
"""

ENCODERS = {
    "cross-encoder": "sleuth.encoders.cross_encoder:CrossEncoder",
    "lexical": "sleuth.encoders.lexical:LexicalEncoder",
    "minilm": "sleuth.encoders.minilm:MiniLM",
    "sentence": "sleuth.encoders.sentence:SentenceEncoder",
}
"""Name → class, for recipes saved as JSON."""
