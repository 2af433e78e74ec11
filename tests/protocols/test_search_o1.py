from sleuth.protocols.prompted.search_o1 import NOTHING, SearchO1
from sleuth.types import Question

QUESTION = Question("q", "Where was the author of Emma born?", ("Rome",))


def search(query: str, before: str = "I need it. ") -> str:
    return f"{before}<|begin_search_query|>{query}<|end_search_query|>"


FOUND = "Final Information: Ann wrote it."
LAST = "So it is \\boxed{Rome}."


def test_search_digest_reason_answer(play, library):
    found = library(Emma="Ann wrote it.", Ann="Born in Rome.")
    script = [search("Emma author"), FOUND, search("Ann born", "Ann. "), "**Final Information:** Rome.", LAST]
    played = play(SearchO1(), script, found, QUESTION)
    t = played.trajectory
    assert played.asked == ["Emma author", "Ann born"]
    assert played.kinds == ["search", "digest", "search", "digest", "answer"]
    assert (t.answer, t.searches, t.ending, t.malformed) == ("Rome", 2, "answered", "")
    assert [a.text for a in t.actions if a.kind == "digest"] == ["Ann wrote it.", "Rome."]


def test_passages_are_read_apart_from_the_reasoning(play, library):
    found = library(Emma="Ann wrote it.")
    played = play(SearchO1(), [search("Emma"), FOUND, LAST], found, QUESTION)
    first, digest, last = played.contexts
    assert "Doc 1(Title: EMMA) Ann wrote it." in digest
    assert "Query: Emma\n" in digest
    assert "I need it." in digest
    assert "Doc 1" not in last
    assert last.startswith(first)
    assert last.endswith("<|begin_search_result|>Ann wrote it.<|end_search_result|>")
    assert [[h.passage.id for h in s.hits] for s in played.trajectory.segments if s.author == "prompt"] == [
        [],
        ["Emma"],
        [],
    ]


def test_no_results_and_an_empty_digest(play):
    played = play(SearchO1(), [search("x"), "", LAST], question=QUESTION)
    assert "Passages:\nNothing was found." in played.contexts[1]
    assert NOTHING in played.contexts[2]
    assert played.trajectory.answer == "Rome"


def test_a_digest_can_neither_answer_nor_search(play):
    script = [search("Emma"), "\\boxed{Bob} <|begin_search_query|>y<|end_search_query|>", LAST]
    played = play(SearchO1(), script, question=QUESTION)
    assert (played.kinds, played.asked, played.trajectory.answer) == (
        ["search", "digest", "answer"],
        ["Emma"],
        "Rome",
    )
    result = played.contexts[2].split("<|begin_search_result|>")[-1]
    assert "<|begin_search_query|>" not in result, "what is quoted of a digest holds no mark"


def test_searches_are_bounded(play):
    script = [search("one"), FOUND, search("two"), FOUND, search("three")]
    played = play(SearchO1(max_searches=2), script, question=QUESTION)
    assert played.asked == ["one", "two"]
    assert played.trajectory.actions[-1].text == "no searches were left"
    assert played.trajectory.malformed == "no searches were left"
    assert "No searches are left" not in played.contexts[2]
    assert played.contexts[4].endswith("No searches are left: finish with the answer.")
    assert play(SearchO1(max_searches=0), [search("x")], question=QUESTION).kinds == ["invalid"]


def test_the_turn_stops_at_its_query(play):
    played = play(SearchO1(), [search("Emma") + " made up", FOUND, LAST], question=QUESTION)
    assert played.trajectory.segments[1].text == search("Emma")
