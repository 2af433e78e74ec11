"""The index of words: analysis, building, updating, searching, and reading its passages."""
