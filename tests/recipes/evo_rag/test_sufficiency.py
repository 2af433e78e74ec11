from collections.abc import Sequence

import pytest

from sleuth.recipes.evo_rag.sufficiency import Evidence, by_gold, by_judge, write_prompt
from sleuth.types import Hit, Passage, Question

DOGS, CATS = (Hit(Passage(i, i.title(), f"About {i}."), 1.0) for i in ("dogs", "cats"))
QUESTION = Question("q", "Who {x}?", ("a",), gold_ids=("dogs", "cats"))


@pytest.mark.parametrize(
    ("question", "hits", "enough"),
    [
        (QUESTION, (DOGS, CATS), True),
        (QUESTION, (CATS, DOGS, DOGS), True),
        (QUESTION, (DOGS,), False),
        (QUESTION, (), False),
        (Question("q", "?", ("a",)), (), True),
        (Question("q", "?", (), answerable=False), (DOGS,), False),
        # MuSiQue's unanswerable questions still list what would have been gold.
        (Question("q", "?", ("a",), gold_ids=("dogs",), answerable=False), (DOGS,), False),
    ],
)
def test_gold_documents_decide(question: Question, hits: tuple[Hit, ...], enough: bool):
    assert by_gold(Evidence(question, hits)) is enough


class Judge:
    """Gives the verdicts it was made with."""

    def __init__(self, *verdicts: bool | None) -> None:
        self.verdicts = list(verdicts)

    def ask(self, prompts: Sequence[str]) -> list[bool | None]:
        return self.verdicts


def test_a_verdict_that_cannot_be_had_is_a_reason():
    evidence = [Evidence(QUESTION, (DOGS,))] * 3
    verdicts = by_judge(Judge(True, None, False), evidence)
    assert verdicts[0] is True
    assert isinstance(verdicts[1], str)
    assert verdicts[2] is False
    assert by_judge(Judge(), []) == []
    assert (
        by_judge(Judge(True, True), evidence) == ["the judge of a refusal gave 2 verdicts on 3 questions"] * 3
    )
    assert "cannot be one: 'yes'" in str(by_judge(Judge("yes"), evidence[:1])[0])  # type: ignore[arg-type]


def test_the_prompt_shows_each_document_once_and_takes_braces_as_they_are():
    prompt = write_prompt(Evidence(QUESTION, (DOGS, CATS, DOGS)))
    assert "Question: Who {x}?" in prompt
    assert prompt.count("About dogs.") == 1
    assert "2. Cats: About cats." in prompt
    assert "(none)" in write_prompt(Evidence(QUESTION, ()))
