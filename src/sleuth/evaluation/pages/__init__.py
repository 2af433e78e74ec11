"""HTML pages that open from disk: reports, comparisons and robustness curves, with plots and episodes."""

from sleuth.errors import ConfigError

try:
    import jinja2 as _jinja2  # noqa: F401
    import matplotlib as _matplotlib  # noqa: F401
except ImportError as error:
    message = f"pages need {error.name}: pip install '.[report]' in the Sleuth checkout"
    raise ConfigError(message) from error
