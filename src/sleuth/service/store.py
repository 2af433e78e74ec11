"""Store: answered questions and people's feedback on them, as JSON lines that training can read.

FOLDER/episodes.jsonl has one trajectory a line, whose question's id is the episode's name; FOLDER/feedback.jsonl one
verdict a line, of which the last on an episode counts.
"""

from __future__ import annotations

import re
import time
from collections.abc import Hashable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from sleuth.errors import ConfigError, DataError
from sleuth.lock import FolderLock
from sleuth.rollouts.store import TrajectoryReader, TrajectoryWriter
from sleuth.storage import LinesWriter, read_lines
from sleuth.text import contains, normalise
from sleuth.types import Trajectory

_NAME = re.compile(rb'\{"question":\{"id":"(\w+)"')
"""Beginning of a line of episodes.jsonl."""
_Text = Annotated[str, Meta(max_length=4000)]


class Feedback(msgspec.Struct, frozen=True):
    """A person's verdict on one episode."""

    episode: Annotated[str, Meta(min_length=1, max_length=100)]
    thumb: Literal["up", "down"]
    correction: _Text = ""
    """The right answer, if the person gave one."""
    time: float = 0.0


class Store:
    """The open folder of a server; one process writes it."""

    def __init__(self, folder: Path) -> None:
        """Raises BusyError if another process writes the folder, ConfigError if it is a file."""
        if folder.is_file():
            raise ConfigError(f"{folder} is a file; answered questions need a folder")
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = FolderLock(folder)
        self.folder = folder
        self._episodes = TrajectoryWriter(episodes_file(folder))
        self.names = _names(episodes_file(folder))
        """Names of the stored episodes."""
        self._feedback = LinesWriter(folder / "feedback.jsonl")

    def add(self, name: str, model: str, trajectory: Trajectory) -> None:
        """Append an episode under its name; the question's data set names the model."""
        question = replace(trajectory.question, id=name, dataset=f"served/{model}")
        self._episodes.append(replace(trajectory, question=question))
        self.names.add(name)

    def judge(self, feedback: Feedback) -> None:
        """Append a verdict."""
        self._feedback.write(msgspec.structs.replace(feedback, time=round(time.time(), 3)))

    def close(self) -> None:
        self._episodes.close()
        self._feedback.close()
        self._lock.release()


def episodes_file(folder: Path) -> Path:
    """The file of a store's episodes."""
    return folder / "episodes.jsonl"


def _names(path: Path) -> set[str]:
    with path.open("rb") as file:
        return {found[1].decode() for line in file if (found := _NAME.match(line))}


def verdicts(folder: Path) -> dict[str, Feedback]:
    """The last verdict on each episode, by the episode's name. DataError for a line that is none."""
    path = folder / "feedback.jsonl"
    try:
        found = [msgspec.convert(row, Feedback) for row in read_lines(path)]
    except msgspec.ValidationError as error:
        raise DataError(f"{path}: a line is not a verdict: {error}") from error
    return {verdict.episode: verdict for verdict in found}


def judged(folder: Path) -> Iterator[tuple[Trajectory, Feedback]]:
    """Episodes with their verdict, in the order of asking. DataError if the folder has no episodes."""
    found = verdicts(folder)
    for trajectory in TrajectoryReader(episodes_file(folder)):
        if feedback := found.get(trajectory.question.id):
            yield trajectory, feedback


def questions(folder: Path) -> Iterator[dict[str, Any]]:
    """Rows for `jsonl:` of every question whose right answer is known: corrected, or a thumb up.

    Other answers to the same question that got a thumb down are its rejected answers.
    """
    wrong: dict[Hashable, dict[str, str]] = {}
    for trajectory, feedback in judged(folder):
        if feedback.thumb == "down" and trajectory.answer:
            answers = wrong.setdefault(_asked(trajectory), {})
            answers.setdefault(normalise(trajectory.answer), trajectory.answer)
    for trajectory, feedback in judged(folder):
        answer = feedback.correction.strip() or (trajectory.answer if feedback.thumb == "up" else "")
        refused = trajectory.ending == "refused" and feedback.thumb == "up"
        if answer or refused:
            others = wrong.get(_asked(trajectory), {})
            rejected = [text for key, text in others.items() if key != normalise(answer or "")]
            yield _row(trajectory, answer or "") | {"rejected": rejected}


def _asked(trajectory: Trajectory) -> Hashable:
    """Equal for episodes of the same question in the same conversation."""
    return normalise(trajectory.question.text), trajectory.question.history


def _row(trajectory: Trajectory, answer: str) -> dict[str, Any]:
    """A record of the reader `jsonl`; the passages shown that hold the answer are gold, and found by their search."""
    question, query = trajectory.question, trajectory.question.text
    hops: dict[str, dict[str, str]] = {}
    searches = {action.segment: action.text for action in trajectory.actions if action.kind == "search"}
    for place, segment in enumerate(trajectory.segments):
        query = searches.get(place, query)
        for hit in segment.hits:
            if contains(hit.passage.text, answer):
                hop = {"query": query, "passage_id": hit.passage.id, "answer": answer}
                hops.setdefault(hit.passage.id, hop)
    row: dict[str, Any] = {
        "id": question.id,
        "question": question.text,
        "answers": [answer] if answer else [],
    }
    if question.history:
        row |= {"history": question.history}
    return row | {"answerable": bool(answer), "gold_ids": list(hops), "hops": list(hops.values())[:1]}
