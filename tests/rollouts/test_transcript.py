import pytest

from sleuth.rollouts.transcript import shown_in
from sleuth.types import Passage

FRANCE = Passage("f", "France", "Its capital is Paris.")
FILM = Passage("m", "Paris, Texas (film)", "A film of 1984.")
BARE = Passage("b", "", "The river Seine flows through Paris.")


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Doc 1(Title: France) Its capital is Paris.", ["f"]),
        ("Doc 1(Title: France) …", ["f"]),
        ("Doc 1(Title: Paris,\n Texas (film)) …", ["m"]),
        ("Doc 1 (Title: X) its capital is Paris!", ["f"]),
        ("Doc 1(Title: Europe) France is in it.", []),  # a title inside another passage shows nothing
        ("the river Seine flows through Paris", ["b"]),
        ("(Title: )", []),
        ("", []),
    ],
)
def test_which_passages_a_result_shows(text: str, ids: list[str]):
    assert [hit.passage.id for hit in shown_in(text, (FRANCE, FILM, BARE))] == ids
