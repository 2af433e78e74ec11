"""One episode: its world, its record, and the protocol that plays it."""
