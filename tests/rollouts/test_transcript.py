import pytest

from sleuth.protocols.iter_retgen import IterRetGen
from sleuth.rollouts.transcript import read_transcript, shown_in
from sleuth.types import Passage, Question

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


def test_methods_that_look_at_earlier_turns_are_read_with_them():
    segments = [
        ("model", "So the answer is: Bob."),
        ("environment", "Ann wrote it."),
        ("model", "So the answer is: Ann."),
    ]
    trajectory = read_transcript(IterRetGen(), Question("q", "Who?", ("Ann",)), segments)
    assert [action.kind for action in trajectory.actions] == ["search", "answer"]
    assert (trajectory.answer, trajectory.ending, trajectory.malformed) == ("Ann", "answered", "")
