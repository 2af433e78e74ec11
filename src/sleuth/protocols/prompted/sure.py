"""SuRe: candidate answers, a summary of the passages in favour of each, and the best-supported one wins.

    prompt  passages … Question: …                    policy  (a) Ann (b) Bea
    prompt  passages … Prediction: Ann                policy  a summary                once a candidate
    prompt  Prediction: Ann … the summary             policy  True                     once a candidate
    prompt  Passage 1 … Passage 2 …                   policy  Passage 1                once an ordered pair

Source: Kim et al. 2024 (ICLR), §3. Validity v is 1 if the summary is found to support its
candidate; rank r adds, over the other summaries, 1 where its own is found more informative and ½
where neither is named; the candidate with the highest v + r is the answer.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Annotated

from msgspec import Meta

from sleuth.episodes.protocol import Chat
from sleuth.episodes.record import Decision
from sleuth.protocols.prompted.fresh_contexts import FreshContexts
from sleuth.text import neutralise, normalise
from sleuth.types import Hit, Question

_CANDIDATE = re.compile(r"\(([a-z])\)\s*(.*?)(?=\([a-z]\)|\n|$)", re.IGNORECASE)
_DONE = "[DONE]"


@dataclass(frozen=True)
class SuRe(FreshContexts):
    """Summarised retrieval: every turn has a new context."""

    candidates: Annotated[int, Meta(ge=1, le=26)] = 2
    """Most candidate answers (K), one per letter; scale.max_steps must be at least 1 + 2K + K(K − 1)."""

    stops = (_DONE,)
    retrieves_first = True

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        """Ask for the candidates."""
        form = ", ".join(f"({chr(ord('a') + i)}) ..." for i in range(self.candidates))
        number = f"{self.candidates} likely answers to the question, of at most three words each"
        ask = f"Read the passages and give {number}, in the form {form}.\n\n{self.show(hits)}"
        return (("user", f"{ask}\n\nQuestion: {question.text}\nAnswers:"),)

    def read(self, text: str) -> Decision:
        """The candidates of a first turn; later turns are read by `decide`, which knows their number."""
        found = self.candidates_in(text)
        return Decision("candidates", "; ".join(found)) if found else Decision("invalid", "no candidates")

    def decide(self, question: Question, turns: Sequence[str]) -> Decision:
        """Candidates, then summaries, verdicts and preferences; the last preference decides the answer."""
        found = self.candidates_in(turns[0])
        if len(found) == 1:
            return Decision("answer", found[0])
        if not found or len(turns) == 1:
            return self.read(turns[0])
        count = len(found)
        if len(turns) == 1 + count + count**2:
            return Decision("answer", _best(found, turns[1 + count :]))
        if len(turns) <= 1 + count:
            return Decision("summary", _tidy(turns[-1]))
        if len(turns) <= 1 + 2 * count:
            return Decision("verdict", f"{_verdict(turns[-1]):g}")
        return Decision("preference", f"{_preferred(turns[-1]):g}")

    def passages(self, turns: Sequence[str], shown: Sequence[Sequence[Hit]]) -> Sequence[Hit]:
        """The passages while summaries are written; none once summaries are compared."""
        needed = len(turns) <= len(self.candidates_in(turns[0]))
        return shown[0] if needed and shown else ()

    def next_prompt(self, question: Question, hits: Sequence[Hit], turns: Sequence[str]) -> Chat:
        """Ask for the next summary, verdict or preference."""
        found = [neutralise(candidate) for candidate in self.candidates_in(turns[0])]
        summaries = [_tidy(turn) for turn in turns[1 : 1 + len(found)]]
        step = len(turns) - 1
        if step < len(found):
            text = (
                f"{self.show(hits)}\n\nFrom these passages alone, write a short text that supports the prediction. "
                f"End with {_DONE}.\nQuestion: {question.text}\nPrediction: {found[step]}\nText:"
            )
        elif step < 2 * len(found):
            index = step - len(found)
            text = (
                f"Question: {question.text}\nPrediction: {found[index]}\nPassage: {summaries[index]}\n"
                "Does the passage support the prediction? Reply with True or False.\nReply:"
            )
        else:
            first, second = list(permutations(summaries, 2))[step - 2 * len(found)]
            text = (
                f"Passage 1: {first}\nPassage 2: {second}\nQuestion: {question.text}\n"
                "Which passage is more informative for the question? Reply with Passage 1 or Passage 2.\nReply:"
            )
        return (("user", text),)

    def candidates_in(self, text: str) -> list[str]:
        """Distinct candidates of a reply in the form "(a) …, (b) …", in order."""
        found: dict[str, str] = {}
        for mark in _CANDIDATE.finditer(text):
            body = mark[2].strip(" \t,;.*")
            found.setdefault(normalise(body), body)
        found.pop("", None)
        return list(found.values())[: self.candidates]


def _tidy(turn: str) -> str:
    """A summary on one line, neutralised."""
    return " ".join(neutralise(turn.replace(_DONE, "")).split())


def _best(candidates: Sequence[str], replies: Sequence[str]) -> str:
    """The candidate with the highest v + r; of equals the first. `replies`: K verdicts, then K(K − 1) preferences."""
    scores = [_verdict(reply) for reply in replies[: len(candidates)]]
    pairs = permutations(range(len(candidates)), 2)
    for (first, _), reply in zip(pairs, replies[len(candidates) :], strict=True):
        scores[first] += _preferred(reply)
    return candidates[scores.index(max(scores))]


def _verdict(reply: str) -> float:
    """1 for True, 0 for False or neither; the first word of the two counts."""
    mark = re.search(r"\b(true|false)\b", reply, re.IGNORECASE)
    return float(mark is not None and mark[1].lower() == "true")


def _preferred(reply: str) -> float:
    """1 if Passage 1 is named first, 0 if Passage 2 is, ½ if neither."""
    mark = re.search(r"\bpassage\s*([12])\b", reply, re.IGNORECASE)
    return 0.5 if mark is None else float(mark[1] == "1")
