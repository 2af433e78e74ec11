"""Episodes: files of stored episodes as one list that can be filtered and sorted while it grows.

A thread reads a few fields of each line, so that the first rows of any number of episodes are there at once.
"""

from __future__ import annotations

import threading
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec
import numpy as np

from sleuth.errors import DataError
from sleuth.metrics.answers import exact_match, rules_of
from sleuth.rollouts.store import decode as decode_trajectory
from sleuth.text import normalise
from sleuth.types import Trajectory

POLL_S = 1.0
"""Seconds between two looks for new episodes."""
LINES_BETWEEN_PAUSES, PAUSE_S = 64, 0.001
"""Pauses of the reading thread."""
FLAGS = [
    "right",
    "wrong",
    "gold_shown",
    "gold_missing",
    "refused",
    "repeated",
    "malformed",
    "failed",
    "unscored",
    "truncated",
    "no_answer",
    "rewarded",
]
"""Filters of a list; an episode has several."""
SORTS = ("reward", "tokens", "searches", "turns")
"""Columns to sort by, downward with "-" before the name; else the order of the files."""


class _Id(msgspec.Struct):
    id: str


class _Hit(msgspec.Struct):
    passage: _Id


class _Question(msgspec.Struct):
    id: str
    text: str
    answers: list[str] = []
    gold_ids: list[str] = []
    answerable: bool = True
    dataset: str = ""


class _Segment(msgspec.Struct):
    author: str
    tokens: msgspec.Raw = msgspec.Raw(b"[]")
    stop: str = ""
    hits: list[_Hit] = []


class _Action(msgspec.Struct):
    kind: str
    text: str


class _Score(msgspec.Struct):
    total: float | None = None
    """None if it is invalid: JSON has no NaN."""
    invalid: str = ""


class _Line(msgspec.Struct):
    """The fields of a trajectory that a list shows."""

    question: _Question
    segments: list[_Segment]
    actions: list[_Action] = []
    ending: str = ""
    fault: str = ""
    malformed: str = ""
    score: _Score | None = None


_DECODE = msgspec.json.Decoder(_Line).decode


@dataclass(slots=True)
class _File:
    """A file of episodes, as far as it has been read."""

    path: Path
    end: int = 0
    last: bytes = b""
    """The last line read, by which a file that was written again is recognised."""
    is_gone: bool = False
    """Whether it was removed or written again, as by a resumed run."""


class _Place(NamedTuple):
    file: int
    start: int
    length: int


class Episodes:
    """The episodes of some files, read in a thread."""

    def __init__(
        self, list_files: Callable[[], Sequence[Path]], *, credit: Callable[..., Any] | None = None
    ) -> None:
        """`credit`: the tokens' credit, from the episodes of one question; see RunFolder.credit."""
        self._list_files, self._credit = list_files, credit
        self._files: list[_File] = []
        self._by_path: dict[Path, int] = {}
        self._places = {name: array("q") for name in _Place._fields}
        self._flags = array("L")
        self._columns = {name: array("d") for name in SORTS}
        self._keys: list[str] = []
        self._by_key: dict[str, list[int]] = defaultdict(list)
        self._is_done = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="episodes", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop reading."""
        self._closed.set()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, row: int) -> bool:
        """Whether there is such a row, and its file still holds it."""
        return 0 <= row < len(self) and not self._files[self._places["file"][row]].is_gone

    def progress(self) -> dict[str, Any]:
        """Episodes read, and whether that is all there are."""
        return {"count": len(self), "done": self._is_done}

    def wait(self) -> None:
        """Block until all episodes that there are have been read."""
        while not self._is_done and not self._closed.wait(0.01):
            pass

    def page(self, flags: Sequence[str], sort: str, text: str, offset: int, limit: int) -> dict[str, Any]:
        """Rows that have every flag and whose question contains `text`. DataError for an unknown flag or sort."""
        name, is_down = sort.removeprefix("-"), sort.startswith("-")
        if unknown := [flag for flag in flags if flag not in FLAGS] or [name] * (name not in ("", *SORTS)):
            raise DataError(f"unknown {unknown[0]!r}; there are {', '.join((*FLAGS, *SORTS))}")
        count = len(self)
        have = np.array(self._flags[:count], dtype=np.uint64)
        wanted = np.uint64(sum(1 << FLAGS.index(flag) for flag in set(flags)))
        gone = [number for number, file in enumerate(self._files) if file.is_gone]
        held = ~np.isin(np.array(self._places["file"][:count]), gone)
        rows = np.flatnonzero((have & wanted == wanted) & held)
        if name:
            values = np.array(self._columns[name][:count])[rows]
            order = np.argsort(-values if is_down else values, kind="stable")
            rows = rows[order]
        elif is_down:
            rows = rows[::-1]
        chosen = self._holding(rows.tolist(), text) if text else rows
        shown = []
        for row in chosen[offset : offset + limit]:
            with suppress(DataError):  # a resumed run may just have removed its file
                shown.append(self._row(int(row)))
        return {"total": len(chosen), "rows": shown, **self.progress()}

    def _holding(self, rows: Sequence[int], text: str) -> list[int]:
        wanted = normalise(text)
        return [row for row in rows if wanted in self._keys[row]]

    def rows_of(self, key: str) -> list[int]:
        """Rows of a question, by its key."""
        return [row for row in self._by_key.get(key, []) if row in self]

    def view(self, row: int) -> dict[str, Any]:
        """A whole episode, with the credit of its tokens where there is one. DataError without such a row."""
        trajectory = self._decoded(row, decode_trajectory)
        group = (
            [self._decoded(other, decode_trajectory) for other in self._group(row)] if self._credit else []
        )
        credit = self._credit(trajectory, group) if self._credit else None
        summary = self._row(row)
        return {"row": row, "summary": summary, "episode": _slim(trajectory), "credit": credit}

    def _group(self, row: int) -> list[int]:
        """Rows of the same question next to this one, in one file: the group that was compared in training."""
        near = [row]
        for step in (-1, 1):
            other = row + step
            while 0 <= other < len(self) and self._keys[other] == self._keys[row]:
                if self._places["file"][other] != self._places["file"][row]:
                    break
                near.append(other)
                other += step
        return sorted(near)

    def _row(self, row: int) -> dict[str, Any]:
        line = self._decoded(row, _DECODE)
        flags = int(self._flags[row])
        answer = next((a.text for a in reversed(line.actions) if a.kind == "answer"), None)
        columns = {name: self._columns[name][row] for name in SORTS}
        return columns | {
            "row": row,
            "key": self._keys[row],
            "file": self._files[self._places["file"][row]].path.stem,
            "id": line.question.id,
            "question": line.question.text[:300],
            "answer": None if answer is None else answer[:300],
            "gold": line.question.answers[:3],
            "flags": [flag for place, flag in enumerate(FLAGS) if flags >> place & 1],
        }

    def _decoded(self, row: int, decode: Callable[[bytes], Any]) -> Any:
        if row not in self:
            raise DataError(f"there is no episode {row} among {len(self)}")
        number, start, length = (self._places[name][row] for name in _Place._fields)
        path = self._files[number].path
        try:
            with path.open("rb") as stream:
                stream.seek(start)
                return decode(stream.read(length))
        except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
            raise DataError(f"{path}: episode {row} cannot be read: {error}") from error

    def _watch(self) -> None:
        """Read what there is, then what is added, until closed."""
        while not self._closed.is_set():
            for path in dict.fromkeys((*self._list_files(), *self._by_path)):
                try:
                    self._read(path)
                except OSError:
                    if path in self._by_path:
                        self._files[self._by_path.pop(path)].is_gone = True
            self._is_done = True
            self._closed.wait(POLL_S)

    def _read(self, path: Path) -> None:
        """Add the lines of a file that were not read yet; a last one without its end is left for later."""
        size, number = path.stat().st_size, self._by_path.get(path, -1)
        if number >= 0 and size == self._files[number].end:
            return
        with path.open("rb") as stream:
            if number < 0 or not _continues(stream, self._files[number]):
                if number >= 0:
                    self._files[number].is_gone = True
                number = self._by_path[path] = len(self._files)
                self._files.append(_File(path))
            file = self._files[number]
            stream.seek(file.end)
            for line in stream:
                if not line.endswith(b"\n"):
                    return
                self._add(_Place(number, file.end, len(line)), line)
                file.end, file.last = file.end + len(line), line
                # A pause lets the server answer requests meanwhile.
                if len(self) % LINES_BETWEEN_PAUSES == 0 and self._closed.wait(PAUSE_S):
                    return

    def _add(self, place: _Place, line: bytes) -> None:
        try:
            read = _DECODE(line)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return  # a damaged line is not an episode
        flags, values = _facts(read)
        for name, value in place._asdict().items():
            self._places[name].append(value)
        for name, column in self._columns.items():
            column.append(values[name])
        self._flags.append(sum(1 << FLAGS.index(flag) for flag in flags))
        key = normalise(read.question.text)
        self._by_key[key].append(len(self._keys))
        self._keys.append(key)


def _continues(stream: BinaryIO, file: _File) -> bool:
    """Whether what was read of a file is still in it."""
    stream.seek(file.end - len(file.last))
    return stream.read(len(file.last)) == file.last


def _facts(line: _Line) -> tuple[set[str], dict[str, float]]:
    """Flags and columns of one episode."""
    question, score = line.question, line.score
    golds = question.answers if question.answerable else []
    prediction = next((a.text for a in reversed(line.actions) if a.kind == "answer"), None)
    prediction = "" if line.ending == "refused" else None if line.fault else prediction
    queries = [normalise(a.text) for a in line.actions if a.kind == "search"]
    shown = {hit.passage.id for segment in line.segments for hit in segment.hits}
    policy = [segment for segment in line.segments if segment.author == "policy"]
    is_right = exact_match(prediction, tuple(golds), rules_of(question.dataset)) == 1.0
    is_known = bool(golds) or not question.answerable
    found = {
        "right": is_known and is_right,
        "wrong": is_known and not is_right,
        "gold_shown": bool(question.gold_ids) and shown.issuperset(question.gold_ids),
        "gold_missing": bool(question.gold_ids) and not shown.issuperset(question.gold_ids),
        "refused": line.ending == "refused",
        "repeated": len(queries) > len(set(queries)),
        "malformed": bool(line.malformed),
        "failed": bool(line.fault),
        "unscored": score is None or bool(score.invalid),
        "truncated": any(segment.stop in ("length", "context") for segment in policy),
        "no_answer": prediction is None,
        "rewarded": score is not None and (score.total or 0.0) > 0,
    }
    tokens = sum(len(bytes(s.tokens).split(b",")) for s in policy if bytes(s.tokens) not in (b"[]", b""))
    columns = {
        "reward": (score.total or 0.0) if score else 0.0,
        "tokens": tokens,
        "searches": len(queries),
        "turns": len(policy),
    }
    return {name for name, has in found.items() if has}, columns


def _slim(trajectory: Trajectory) -> dict[str, Any]:
    """The episode as plain values without token ids and log-probabilities."""
    plain: dict[str, Any] = msgspec.to_builtins(trajectory)
    for segment in plain["segments"]:
        segment["length"] = len(segment.pop("tokens"))
        segment.pop("logprobs")
        segment.pop("ends")
    return plain
