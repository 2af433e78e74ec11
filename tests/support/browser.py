"""A headless Chromium for tests of the page."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDS_CHROMIUM = [
    pytest.mark.skipif(CHROMIUM is None, reason="the page's tests need Chromium (Debian's package chromium)"),
    pytest.mark.slow,
]
SHOTS = os.environ.get("SLEUTH_SCREENSHOTS")
"""Folder for pictures of the page, for a person to look at; none are taken without it."""


def look(page: Any, name: str) -> None:
    """Take a picture if one is wanted."""
    if SHOTS:
        page.screenshot(path=str(Path(SHOTS) / f"{name}.png"), full_page=True)


def violations(page: Any) -> list[str]:
    """Rules of accessibility that the page breaks, by axe-core."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
    found = axe.Axe().run(page).response["violations"]
    return [f"{each['id']}: {each['nodes'][0]['html'][:120]}" for each in found]
