import pytest

from sleuth.datasets.paragraphs import joined, passage_id, table, titled_paragraphs
from sleuth.fields import FieldError

COLUMNS = [("title",), ("sentences", "content")]


@pytest.mark.parametrize(
    "value",
    [
        [["a", [1]], ["b", [2]]],
        {"title": ["a", "b"], "sentences": [[1], [2]]},
        {"title": ["a", "b"], "content": [[1], [2]]},
        [{"title": "a", "sentences": [1]}, {"title": "b", "content": [2]}],
        '[["a", [1]], ["b", [2]]]',
    ],
)
def test_a_nested_table_in_any_layout(value: object):
    assert table(value, "context", COLUMNS) == [("a", [1]), ("b", [2])]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"title": ["a"], "sentences": []}, "columns of different length"),
        ({"title": ["a"]}, "context.sentences: missing"),
        ([["a"]], r"context\[0\]: must have 2 parts"),
        (7, "must be a list"),
        ("[", "not JSON"),
    ],
)
def test_a_table_that_is_none(value: object, reason: str):
    with pytest.raises(FieldError, match=reason):
        table(value, "context", COLUMNS)


def test_ids_say_the_title_and_tell_texts_apart():
    one = passage_id("Grey Harbour (film)", "text")
    assert one.startswith("grey-harbour-film-")
    assert one == passage_id("Grey Harbour (film)", "text")
    assert one != passage_id("Grey Harbour (film)", "other text")
    # Title and text must not run into one another.
    assert passage_id("a", "bc").split("-")[-1] != passage_id("ab", "c").split("-")[-1]
    assert passage_id("東京", "x").startswith("passage-")
    assert len(passage_id("x" * 500, "y")) < 60


def test_paragraphs_without_text_and_repeats_are_left_out():
    found = titled_paragraphs([["A", []], ["B", [" one ", "", "two"]], ["B", ["one", "two"]]], "context")
    assert [(p.title, p.text) for p in found] == [("B", "one two")]
    assert joined(["  ", ""], "x") == ""
    with pytest.raises(FieldError, match=r"context\[0\].sentences\[0\]: must be text"):
        titled_paragraphs([["A", [3]]], "context")
