"""Verbs over passages: build an index, search it, serve it."""
