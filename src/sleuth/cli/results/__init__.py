"""Verbs over finished results: compare runs, published tables, score predictions and transcripts, judges."""
