"""Texts as vectors."""

ENCODERS = {
    "lexical": "sleuth.encoders.lexical:LexicalEncoder",
    "minilm": "sleuth.encoders.minilm:MiniLM",
}
"""Name → class, for recipes saved as JSON."""
