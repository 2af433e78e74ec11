import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.episodes.tags import find_tags

NAMES = ("search", "answer", "think")


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("<think>a</think> x <search>q</search>", [("think", "a"), ("search", "q")]),
        # unclosed and stray tags
        ("<search>q", []),
        ("q</search>", []),
        ("<search>q</answer>", []),
        # the innermost opening tag wins
        ("<search>a<search>b</search>", [("search", "b")]),
        ("<think>a<answer>b</answer></think>", [("answer", "b")]),
        # tags are exact
        ("<Answer>x</Answer>", []),
        ("< answer>x</answer>", []),
        ("<answer id=1>x</answer>", []),
        # unknown tags are text
        ("<answer>a <b>bold</b></answer>", [("answer", "a <b>bold</b>")]),
    ],
)
def test_blocks(text: str, blocks: list[tuple[str, str]]):
    assert [(tag.name, tag.body) for tag in find_tags(text, NAMES)] == blocks
    assert find_tags(text, ()) == []


@given(
    st.lists(
        st.sampled_from(["<search>", "</search>", "<answer>", "</answer>", "x", " ", "<", ">"]), max_size=30
    )
)
def test_spans_point_at_bodies_and_never_overlap(pieces: list[str]):
    text = "".join(pieces)
    position = 0
    for tag in find_tags(text, NAMES):
        assert text[tag.start : tag.end] == tag.body
        assert text[: tag.start].endswith(f"<{tag.name}>")
        assert text[tag.end :].startswith(f"</{tag.name}>")
        assert f"<{tag.name}>" not in tag.body
        assert tag.start >= position
        position = tag.end
