from hypothesis import given
from hypothesis import strategies as st

from sleuth.episodes.tags import find_tags

NAMES = ("search", "answer", "think")


def bodies(text: str) -> list[tuple[str, str]]:
    return [(tag.name, tag.body) for tag in find_tags(text, NAMES)]


def test_blocks_in_order():
    assert bodies("<think>a</think> x <search>q</search>") == [("think", "a"), ("search", "q")]


def test_unclosed_and_stray_tags_are_no_blocks():
    assert bodies("<search>q") == []
    assert bodies("q</search>") == []
    assert bodies("<search>q</answer>") == []


def test_innermost_opening_wins():
    assert bodies("<search>a<search>b</search>") == [("search", "b")]
    assert bodies("<think>a<answer>b</answer></think>") == [("answer", "b")]


def test_tags_are_exact():
    assert bodies("<Answer>x</Answer>") == []
    assert bodies("< answer>x</answer>") == []
    assert bodies("<answer id=1>x</answer>") == []


def test_unknown_tags_are_text():
    assert bodies("<answer>a <b>bold</b></answer>") == [("answer", "a <b>bold</b>")]


def test_no_names_no_blocks():
    assert find_tags("<answer>x</answer>", ()) == []


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
