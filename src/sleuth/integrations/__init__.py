"""Sleuth's methods inside other training engines."""
