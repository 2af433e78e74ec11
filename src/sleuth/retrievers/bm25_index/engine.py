"""What goes wrong inside the engine, told as everything else is that goes wrong with an index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sleuth.errors import RetrievalError


@contextmanager
def engine_errors(told: str) -> Iterator[None]:
    """Whatever the engine raises within becomes a RetrievalError of one line, `told` and the reason."""
    try:
        yield
    except (ValueError, OSError) as error:
        raise RetrievalError(f"{told}: {_one_line(error)}") from error
    except BaseException as error:
        # On a damaged file the engine panics, which comes as a class that cannot be imported and, so that
        # nobody catches it by chance, is no Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise RetrievalError(f"{told}: damaged ({_one_line(error)}); build the index again") from error


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())
