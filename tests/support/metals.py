"""Four passages that every search engine is given: with and without title, a line end, a trailing space."""

from sleuth.types import Passage

PASSAGES = [
    Passage("curie", "Marie Curie", "She discovered radium, and radium made her famous. "),
    Passage("gold", "", "Gold is dense. Radium is rarer than gold."),
    Passage("copper", "Chile", "Copper mines\nof the north"),
    Passage("b", "", "bread"),
]
