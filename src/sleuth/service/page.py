"""write_page: the page with its data as one HTML file that needs no server."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from sleuth.service.viewer import STATIC, Viewer
from sleuth.storage import whole_file

_IMPORT = re.compile(r"^import .*?;$", re.MULTILINE | re.DOTALL)
_PRELOAD = re.compile(r'^<link rel="modulepreload".*\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)


def write_page(path: Path, viewer: Viewer, most: int) -> None:
    """Write the page with at most `most` episodes of each source, the last ones."""
    html = _PRELOAD.sub("", _static("index.html"))
    # A script imports from earlier ones only, so that without imports and exports they are one module.
    scripts = [_static(name) for name in STATIC if name.endswith(".js")]
    code = "\n".join(_EXPORT.sub("", _IMPORT.sub("", script)) for script in scripts)
    html = html.replace(
        '<link rel="stylesheet" href="/static/page.css">', f"<style>{_static('page.css')}</style>"
    )
    data = msgspec.json.encode(_data(viewer, most)).decode().replace("<", "\\u003c")
    whole = (
        f'<script type="application/json" id="data">{data}</script>\n<script type="module">{code}</script>'
    )
    html = html.replace('<script type="module" src="/static/app.js"></script>', whole)
    with whole_file(path) as file:
        file.write(html.encode("utf-8", "replace"))


def _data(viewer: Viewer, most: int) -> dict[str, Any]:
    """Everything that the page asks a server for."""
    episodes = {}
    for name, source in viewer.sources.items():
        source.wait()
        rows = [row for row in range(len(source)) if row in source]
        episodes[name] = [source.view(row) for row in rows[max(0, len(rows) - most) :]]
    return viewer.about() | {"metrics": [run.metrics() for run in viewer.runs], "episodes": episodes}


def _static(name: str) -> str:
    return files("sleuth.service").joinpath("static", name).read_text(encoding="utf-8")
