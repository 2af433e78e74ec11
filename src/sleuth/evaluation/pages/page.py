"""Pages: Jinja templates that escape every value, written as one HTML file that loads and runs nothing."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

_LOADER = PackageLoader("sleuth.evaluation.pages")
TEMPLATES = Environment(
    loader=_LOADER, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
)


def write_page(path: Path, template: str, **values: Any) -> None:
    """Render a template into a file; makes the file's folder."""
    html = TEMPLATES.get_template(template).render(**values)
    path.parent.mkdir(parents=True, exist_ok=True)
    # A lone surrogate in a model's output cannot be encoded; it must not cost the whole page.
    path.write_text(html, encoding="utf-8", errors="replace")
