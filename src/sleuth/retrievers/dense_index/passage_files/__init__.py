"""Passages that an index of vectors stores for itself; goes away once vectors read those of the words."""
