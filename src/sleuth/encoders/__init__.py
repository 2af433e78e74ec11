"""Texts as vectors, and pairs of texts as scores.

base: the interface · lexical: words counted · minilm: all-MiniLM-L6-v2 · sentence: any model of
sentence-transformers (families: their prefixes) · opening: by name · cross_encoder: query and passage together.
"""

ENCODERS = {
    "cross-encoder": "sleuth.encoders.cross_encoder:CrossEncoder",
    "lexical": "sleuth.encoders.lexical:LexicalEncoder",
    "minilm": "sleuth.encoders.minilm:MiniLM",
    "sentence": "sleuth.encoders.sentence:SentenceEncoder",
}
"""Name → class, for recipes saved as JSON."""
