"""Failures of the engine come as one line, a panic like any other; what is not its failure comes as it is."""

import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.bm25_index.engine import engine_errors


class PanicException(BaseException):
    """The name that pyo3 gives it."""


@pytest.mark.parametrize("error", [ValueError("no\nfile"), OSError("no\nfile"), PanicException("no\nfile")])
def test_one_line(error: BaseException):
    with pytest.raises(RetrievalError, match=r"^index: .*no file[^\n]*$"), engine_errors("index"):
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), KeyError("x"), RetrievalError("two\nlines")])
def test_everything_else(error: BaseException):
    with pytest.raises(type(error)) as caught, engine_errors("index"):
        raise error
    assert caught.value is error
