"""An index of vectors: exact search with numpy, or approximate search with faiss."""
