import pytest

from sleuth.datasets.chains import (
    asked_for,
    bridge_hops,
    comparison_hops,
    evidence_hops,
    need_of,
    words_about,
)
from sleuth.types import Passage

VERRIN = Passage("v", "Odo Verrin", "Odo Verrin was a painter born in Karstad.")
KARSTAD = Passage(
    "k", "Karstad", "The river Lumme flows through Karstad, where the painter Odo Verrin lived."
)


@pytest.mark.parametrize(
    ("question", "need"),
    [
        ("What is the birthplace of Odo Verrin?", "the birthplace of Odo Verrin"),
        ("who led the revolt of Pell", "who led the revolt of Pell"),
        ("Which painter lived in Karstad?", "which painter lived in Karstad"),
        ("How many bridges cross the Lumme?", "how many bridges cross the Lumme"),
        ("When did Karstad burn", "when Karstad did burn"),
        ("Why was the Karstad abandoned?", "why the Karstad was abandoned"),
        ("Where does she live?", "the answer to “Where does she live”"),
        ("name of the river", "the answer to “name of the river”"),
    ],
)
def test_need_reads_well_after_i_need_to_find(question: str, need: str):
    assert need_of(question, ["Karstad"]) == need


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("What is the date of birth of the painter?", "the date of birth of X"),
        ("How many seats does the hall of the club have?", "the number of seats for X"),
        ("The opera is based on which 1831 novel by Ida Renn?", "the 1831 novel of X"),
        ("What river flows through the town?", "the river of X"),
        ("When was the painter born?", "the date for X"),
        ("Where was the painter who knew Ida Renn born?", "the place for X"),
        ("The film was produced by who?", "the person for X"),
        ("Is it large?", "the answer for X"),
    ],
)
def test_phrase_for_the_thing_asked_for(question: str, asked: str):
    assert asked_for(question, "X") == asked


def test_order_does_not_depend_on_the_file():
    question = "What river flows through the town where the painter Odo Verrin was born?"
    one = bridge_hops(question, "Lumme", [VERRIN, KARSTAD])
    other = bridge_hops(question, "Lumme", [KARSTAD, VERRIN])
    assert one == other
    assert [hop.passage_id for hop in one] == ["v", "k"]


def test_a_title_that_nothing_has_shown_is_not_typed():
    club = Passage("c", "Karstad Rowers", "A rowing club of the largest town on the Lumme.")
    song = Passage("s", "Green Oars", "Green Oars is the song of the Karstad Rowers.")
    first, last = bridge_hops("What is the song of the rowing club on the Lumme?", "Green Oars", [song, club])
    assert (first.passage_id, first.query, first.answer) == ("c", "rowing club Lumme", "Karstad Rowers")
    assert (last.passage_id, last.query) == ("s", "Karstad Rowers song")


def test_an_article_that_writes_the_name_otherwise_still_leads_on():
    crew = Passage("g", "Boat Race 12", "Boat Race 12 was won by Odo Maria Verrin.")
    _, last = bridge_hops("Boat Race 12 was won by the painter born in what year?", "1904", [crew, VERRIN])
    assert (last.query, last.need) == ("Odo Verrin", "the year of Odo Verrin")


def test_comparison_follows_the_question():
    hops = comparison_hops("Is Karstad older than Odo Verrin?", [VERRIN, KARSTAD])
    assert [(hop.query, hop.passage_id) for hop in hops] == [("Karstad", "k"), ("Odo Verrin", "v")]


def test_words_about_come_from_the_question_only():
    assert words_about("Who was the painter born in the Karstad's valley?", VERRIN) == "painter born Karstad"
    assert words_about("Nothing shared here", VERRIN) == ""
    many = " ".join(f"w{i}" for i in range(40))
    assert len(words_about(many, Passage("x", "", many)).split()) == 10


def test_half_a_chain_of_triples_is_none():
    assert evidence_hops([("Odo Verrin", "place of birth", "Karstad")], [VERRIN, KARSTAD]) == ()
    assert evidence_hops([("A", "x", "B"), ("C", "y", "D")], [VERRIN, KARSTAD]) == ()
    assert evidence_hops([], []) == ()


def test_one_article_for_two_values_of_a_relation_is_looked_up_once():
    triples = [
        ("Odo Verrin", "country", "Ostria"),
        ("Odo Verrin", "country", "Quen"),
        ("Karstad", "river", "Lumme"),
    ]
    assert [hop.answer for hop in evidence_hops(triples, [VERRIN, KARSTAD])] == ["Ostria", "Lumme"]
