"""Demonstrations from a teacher, written to a file, read back as episodes to train on."""

import json
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines.base import Request
from sleuth.engines.scripted import ScriptedEngine
from sleuth.episodes.limits import Limits
from sleuth.episodes.protocol import AgentProtocol
from sleuth.episodes.world import World
from sleuth.errors import ConfigError, DataError
from sleuth.protocols.arena import ArenaSections
from sleuth.protocols.eviomni import EviOmni
from sleuth.protocols.prompted.sure import SuRe
from sleuth.protocols.search_tags import SearchTags
from sleuth.retrievers.given import AllGiven
from sleuth.rollouts.lessons import load_lessons, teach
from sleuth.types import Passage, Question
from support.fixed_retriever import Fixed

PASSAGES = (Passage("a", "Tea", "A drink."), Passage("b", "France", "Its capital is Paris."))
QUESTIONS = [
    Question("q1", "Capital of France?", ("Paris",), PASSAGES, ("b",), dataset="hotpotqa"),
    Question("q2", "Capital of Italy?", ("Rome",), PASSAGES, ("b",), dataset="hotpotqa"),
]
WHOLE = "<reason>Doc 2.</reason><extract>Paris.</extract><answer>Paris</answer>"


def world_of(protocol: AgentProtocol, reply: Any = "", retriever: Any = None) -> World:
    engine = ScriptedEngine(reply if callable(reply) else lambda request, turn: reply)
    return World(protocol, engine, retriever or AllGiven(), Limits(max_context=20_000, max_new_tokens=500))


def save(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_only_right_answers_in_the_grammar_are_kept_and_learnt_with_loss_on_the_model_s_text(tmp_path: Path):
    """EviOmni, §2.2: one file, from which each protocol takes its own sections."""
    full = EviOmni(instruction="{question}\n{passages}")
    rows = teach(QUESTIONS, world_of(full, WHOLE))
    assert [row["id"] for row in rows] == ["q1"]  # the other answer is wrong
    path = save(tmp_path / "lessons.jsonl", rows)
    for sections, text in (
        (("reason", "extract", "answer"), WHOLE),
        (("reason", "extract"), "<reason>Doc 2.</reason><extract>Paris.</extract>"),
        (("extract",), "<extract>Paris.</extract>"),
    ):
        (lesson,), bad = load_lessons(path, world_of(EviOmni(full.instruction, sections)))
        assert bad == []
        prompt, own = lesson.segments
        assert "Doc 2(Title: France) Its capital is Paris." in prompt.text
        assert own.text == bytes(own.tokens).decode() == text
        assert sum(lesson.loss_mask) == len(own.tokens)


def test_a_teacher_of_arena_knows_the_answer_and_writes_the_analysis():
    """ARENA, Table 9 and appendix D."""
    asked: list[Request] = []

    def reply(request: Request, turn: int) -> str:
        asked.append(request)
        return "Reference 2 names the capital.</analysis>"

    protocol = ArenaSections(instruction="{question} {references}")
    rows = teach(QUESTIONS[:1], world_of(protocol, reply))
    (message,) = asked[0].messages
    assert message.content.endswith("Relevance IDs: [2]\nAnswer: Paris")
    (segment,) = rows[0]["segments"]
    assert segment["text"] == (
        "<relevance>[2]</relevance><analysis>Reference 2 names the capital.‹/analysis></analysis>"
        "<answer>Paris</answer>"
    )


def test_a_search_agent_learns_from_results_as_they_were(tmp_path: Path):
    turns = [
        ("model", "<think>t</think><search>France</search>"),
        ("environment", "\n\n<information>Doc 1(Title: France) Paris.</information>\n\n"),
        ("model", "<answer>Paris</answer>"),
    ]
    row = {"question": "q?", "answers": ["Paris"], "segments": [{"by": b, "text": t} for b, t in turns]}
    unfinished = row | {"segments": row["segments"][:2]}
    path = save(tmp_path / "l.jsonl", [row, unfinished, row | {"segments": "x"}])
    kept, bad = load_lessons(path, world_of(SearchTags(instruction="{question}"), retriever=Fixed("ab")))
    (lesson,) = kept
    assert [s.author for s in lesson.segments] == ["prompt", "policy", "world", "policy"]
    assert [s.text for s in lesson.segments[1:]] == [text for _, text in turns]
    assert [line.split(":")[1] for line in bad] == ["2", "3"]


def test_files_and_protocols_that_cannot_teach(tmp_path: Path):
    path = save(tmp_path / "l.jsonl", [{"question": "q?", "answers": ["a"], "segments": []}])
    with pytest.raises(DataError, match=r"no usable transcript; the first problem: .*l\.jsonl:1: no answer"):
        load_lessons(path, world_of(SearchTags(instruction="{question}"), retriever=Fixed("ab")))
    with pytest.raises(ConfigError, match="SuRe cannot learn from transcripts"):
        load_lessons(path, world_of(SuRe()))
    with pytest.raises(DataError, match="nowhere"):
        load_lessons(tmp_path / "nowhere.jsonl", world_of(SearchTags(instruction="{question}")))
