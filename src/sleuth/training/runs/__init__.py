"""A run: its phases, log, checkpoints, limits and trackers."""
