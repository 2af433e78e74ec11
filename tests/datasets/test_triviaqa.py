import json
from pathlib import Path
from typing import Any

import pytest

from sleuth.datasets.triviaqa import TriviaQAReader
from sleuth.fields import FieldError

PUBLISHED: dict[str, Any] = {
    "Question": "Which bird is on the flag of Ostria?",
    "QuestionId": "tc_1",
    "Answer": {
        "Value": "Heron",
        "Aliases": ["Grey heron", "Heron"],
        "NormalizedAliases": ["grey heron", "heron"],
        "NormalizedValue": "heron",
        "HumanAnswers": ["a heron"],
        "Type": "WikipediaEntity",
    },
    "EntityPages": [],
}
WANTED = ("Heron", "a heron", "Grey heron", "grey heron", "heron")


@pytest.mark.parametrize("container", ["Data", "data"])
@pytest.mark.parametrize("indent", [None, 4])
def test_published_file_is_one_object(tmp_path: Path, container: str, indent: int | None):
    path = tmp_path / "wikipedia-dev.json"
    path.write_text(json.dumps({"Version": 1.0, container: [PUBLISHED]}, indent=indent))
    (question,) = TriviaQAReader().load(path).questions
    assert (question.id, question.answers, question.dataset) == ("tc_1", WANTED, "triviaqa")


def test_a_file_cut_short_gives_what_is_whole(tmp_path: Path):
    path = tmp_path / "web-dev.json"
    text = json.dumps({"Data": [PUBLISHED, {**PUBLISHED, "QuestionId": "tc_2"}]}, indent=4)
    path.write_text(text[:-200])
    loaded = TriviaQAReader().load(path)
    assert [q.id for q in loaded.questions] == ["tc_1"]
    assert [(bad.line, "not JSON" in bad.reason) for bad in loaded.bad] == [(2, True)]


def test_hub_columns():
    row = {
        "question": PUBLISHED["Question"],
        "question_id": "tc_1",
        "answer": {"value": "Heron", "aliases": ["Grey heron"], "normalized_aliases": ["grey heron"]},
    }
    question = TriviaQAReader().question_of(row)
    assert (question.id, question.answers) == ("tc_1", ("Heron", "Grey heron", "grey heron"))


def test_the_hub_test_split_has_no_answers():
    row = {"question": "q", "question_id": "t", "answer": {"value": "<unk>"[:0], "aliases": []}}
    with pytest.raises(FieldError, match=r"Answer.Value: empty"):
        TriviaQAReader().question_of(row)
