"""HTML pages that open from disk: reports, comparisons and robustness curves, with plots and episodes."""

from importlib.util import find_spec

from sleuth.errors import ConfigError

if missing := [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]:
    raise ConfigError(f"pages need {' and '.join(missing)}: pip install '.[report]' in the Sleuth checkout")
