"""The index of vectors that dense searches: how it is built and kept, exact or through faiss."""
