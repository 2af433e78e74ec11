"""Demonstrations written elsewhere: a teacher's right answers become transcripts, and transcripts become episodes.

ARENA's SFT-reasoning (Table 9), EviOmni's rationale data (§2.2) and Eval-RAR's SFT are made of such text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sleuth.episodes.protocol import AgentProtocol
from sleuth.episodes.world import World
from sleuth.errors import ConfigError, DataError, SleuthError
from sleuth.files import lines
from sleuth.metrics.answers import exact_match, golds_of, rules_of
from sleuth.retrievers.given import InOrder
from sleuth.rollouts.demonstrate import written
from sleuth.rollouts.run import play_all, roll_out
from sleuth.rollouts.transcript import read_transcript
from sleuth.rollouts.transcript_rows import TranscriptRow, read_row
from sleuth.types import Question, Segment, Trajectory


def teach(questions: Sequence[Question], world: World, width: int = 64) -> list[dict[str, Any]]:
    """Rows of the episodes that the teacher, the world's engine, answers rightly and in the grammar.

    The teacher follows `protocol.teacher()`, which may know the gold answer.
    """
    asked = replace(world, protocol=world.protocol.teacher())
    played = roll_out(questions, asked, width=width)
    rows = [_row(asked.protocol, trajectory) for (trajectory,) in played if not trajectory.fault]
    return [row for row in rows if _is_right(world.protocol, row)]


def _row(teacher: AgentProtocol, trajectory: Trajectory) -> dict[str, Any]:
    question = trajectory.question
    prompted = [hit.passage for hit in trajectory.segments[0].hits]
    return {
        "id": question.id,
        "question": question.text,
        "answers": list(question.answers),
        "passages": [{"id": p.id, "title": p.title, "text": p.text} for p in prompted or question.passages],
        "gold_ids": list(question.gold_ids),
        "dataset": question.dataset,
        "segments": [{"by": by, "text": text} for by, text in teacher.lesson(trajectory)],
    }


def _is_right(protocol: AgentProtocol, row: dict[str, Any]) -> bool:
    question = Question(row["id"], row["question"], tuple(row["answers"]))
    read = read_transcript(protocol, question, [(s["by"], s["text"]) for s in row["segments"]])
    rules = rules_of(row["dataset"])
    return not read.malformed and exact_match(read.answer, golds_of(question), rules) == 1.0


def load_lessons(path: Path, world: World) -> tuple[list[Trajectory], list[str]]:
    """Trajectories of a transcript file, in the tokens of the world's engine; and why rows are left out.

    A row's passages are those of the prompt where the protocol shows any. Raises ConfigError for a protocol with
    several contexts, and DataError for a file that cannot be read or holds no usable row.
    """
    if type(world.protocol).play is not AgentProtocol.play:
        raise ConfigError(
            f"{type(world.protocol).__name__} cannot learn from transcripts: it has several contexts"
        )
    kept: list[Trajectory] = []
    bad: list[str] = []
    for number, line in lines(path):
        where = f"{path}:{number}"
        try:
            (trajectory,) = play_all([partial(_episode, read_row(line, where), world)])
        except SleuthError as error:
            bad.append(str(error) if str(error).startswith(where) else f"{where}: {error}")
            continue
        fault = trajectory.fault or trajectory.malformed
        if fault:
            bad.append(f"{where}: {fault}")
        else:
            kept.append(trajectory)
    if not kept:
        raise DataError(f"{path}: no usable transcript" + (f"; the first problem: {bad[0]}" if bad else ""))
    return kept, bad


async def _episode(row: TranscriptRow, world: World) -> Trajectory:
    protocol, question = world.protocol, row.asked
    record = world.record(question)
    shown = InOrder(question.passages) if question.passages else None
    hits = await record.search_question(shown) if protocol.retrieves_first else []
    record.prompt(hits, lambda fit: protocol.prompt(record.question, fit))
    pieces = [(by, protocol.adapt(text) if by == "model" else text) for by, text in row.pieces]
    read = read_transcript(protocol, question, pieces)
    tokenizer = world.engine.tokenizer

    def encoded(segment: Segment) -> Segment:
        if segment.author == "world":
            return replace(segment, tokens=tuple(tokenizer.encode(segment.text)))
        done = written(tokenizer, segment.text)
        return replace(segment, tokens=done.tokens, logprobs=done.logprobs, ends=done.ends, stop="stop")

    segments = (record.segments[0], *map(encoded, read.segments[1:]))
    length = sum(len(segment.tokens) for segment in segments)
    fault = "" if length <= world.limits.max_context else f"{length} tokens exceed max_context"
    return replace(read, segments=segments, fault=fault)
