"""Every prompt that one of the five papers prints, word for word; line breaks and curly quotation marks are typesetting."""

import json
from pathlib import Path

import pytest

from sleuth.judges.correctness import PROMPT
from sleuth.protocols.arena import TEACHER
from sleuth.recipes import load_recipe

PRINTED: dict[str, str] = json.loads(
    Path(__file__).with_name("printed_prompts.json").read_text(encoding="utf-8")
)


def plain(text: str) -> str:
    """One line, straight quotation marks, one name for the slot of the passages."""
    for mark, straight in {"’": "'", "{document}": "{passages}"}.items():
        text = text.replace(mark, straight)
    return " ".join(text.split())


@pytest.mark.parametrize("name", [name for name in PRINTED if "/" in name])
def test_a_recipe_asks_as_printed(name: str):
    assert plain(load_recipe(name).protocol.instruction) == plain(PRINTED[name])  # type: ignore[attr-defined]


def test_the_judge_and_the_teacher_of_arena_are_asked_as_printed():
    assert plain(PROMPT) == plain(PRINTED["table-8"])
    assert plain(TEACHER) == plain(PRINTED["table-9"])


def test_the_reader_is_the_printed_prompt_of_retrieval_augmented_qa():
    assert plain(load_recipe("eviomni/reader").protocol.instruction) == plain(PRINTED["eviomni/full"])  # type: ignore[attr-defined]
