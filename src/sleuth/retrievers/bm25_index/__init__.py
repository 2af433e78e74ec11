"""The index of words that bm25 searches: how texts become terms, how it is built, resumed, changed, verified and read."""
