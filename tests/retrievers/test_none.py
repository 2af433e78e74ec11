import pytest

from sleuth.errors import RetrievalError
from sleuth.retrievers.none import NoRetriever
from sleuth.types import Question


def test_nothing_is_ever_found():
    retriever = NoRetriever().for_question(Question("q", "?", ()))
    assert retriever.search(["Paris", ""], 3) == [[], []]
    assert retriever.search([], 3) == []
    assert retriever.identity() == {"retriever": "none"}


def test_misuse_is_said_as_by_any_other_retriever():
    with pytest.raises(RetrievalError, match="at least 1"):
        NoRetriever().search(["x"], 0)
    with pytest.raises(RetrievalError, match="not the text"):
        NoRetriever().search("x", 1)
