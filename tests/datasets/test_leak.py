from dataclasses import replace

from sleuth.datasets.leak import Leak, find_leaks
from sleuth.types import Exchange, Question


def ask(identity: str, text: str, dataset: str = "nq") -> Question:
    return Question(identity, text, ("x",), dataset=dataset)


def test_by_id_within_a_data_set_and_by_normalised_text():
    train = [ask("1", "Who wrote the Moss Atlas?"), ask("2", "Where is Pell?", "popqa")]
    evaluation = [
        ask("1", "Another wording of it"),
        ask("9", "who wrote  moss atlas"),
        ask("2", "Where is Quen?"),
        ask("3", "???"),
    ]
    assert find_leaks(train, evaluation) == [Leak("1", "nq", "id"), Leak("9", "nq", "question")]
    # ids count within a named data set only, and texts without a word do not count
    assert find_leaks([ask("1", "a?", "")], [ask("1", "b?", "")]) == []
    assert find_leaks([ask("1", "!!")], [ask("2", "??")]) == []


def test_a_follow_up_of_another_conversation_is_another_question():
    def after(earlier: str, identity: str) -> Question:
        return replace(ask(identity, "What about France?"), history=(Exchange(earlier, "x"),))

    train = [after("Capital of Germany?", "1")]
    assert find_leaks(train, [after("Population of Germany?", "2")]) == []
    assert find_leaks(train, [after("capital of Germany", "3")]) == [Leak("3", "nq", "question")]
