"""Judges: does this text support that claim? Name → part."""

from __future__ import annotations

JUDGES: dict[str, str] = {}
