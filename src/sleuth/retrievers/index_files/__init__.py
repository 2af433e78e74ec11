"""Manifest and one-step publishing, shared by indexes of words and of vectors."""
