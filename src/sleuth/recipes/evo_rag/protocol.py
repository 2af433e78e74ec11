"""EVO-RAG's grammar: think, then exactly one of search, backtrack, answer and refuse.

    policy  <think>…</think><search>query</search>
    world   <information>Doc 1(Title: …) …</information>
    policy  <think>…</think><backtrack/>          the search and its documents leave the context
    world   (the last search was dropped)
    policy  <think>…</think><answer>…</answer>    or <refuse>reason</refuse>

Source: EVO-RAG, §3.2, action space; the tags are ours, since the paper shows none.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sleuth.episodes.record import Decision
from sleuth.episodes.tags import find_tags
from sleuth.protocols.demonstration import write_turn
from sleuth.protocols.search_tags import TaggedSearch, outside
from sleuth.types import Hit, Question, Segment, Trajectory

BACKTRACK = "<backtrack/>"
# Reason of a demonstrated refusal, and thought of a demonstrated backtrack.
UNANSWERABLE, USELESS = "The documents do not answer this.", "These documents do not help."


@dataclass(frozen=True)
class EvoRAG(TaggedSearch):
    """An agent that may also take a search back, or refuse."""

    backtrack_message: str = "\n\n(the last search was dropped)\n\n"
    """Reply to a backtrack."""
    detours: float = 0.0
    """Share of demonstrations that first search for the whole question and, if that fails, backtrack."""

    tags = ("think", "search", "answer", "refuse")
    stops = ("</search>", BACKTRACK, "</answer>", "</refuse>")
    refuses = True
    keeps_context = False

    def reply_to(self, kind: str) -> str:
        return self.backtrack_message if kind == "backtrack" else super().reply_to(kind)

    def read(self, text: str) -> Decision:
        """The turn's one action; invalid with the reason if there is none, more than one, or an empty one."""
        blocks = find_tags(text, self.tags)
        found = [Decision(b.name, b.body.strip()) for b in blocks if b.name != "think"]
        found += [Decision("backtrack", "")] * outside(text, blocks).count(BACKTRACK)
        if len(found) != 1:
            return Decision("invalid", f"{len(found) or 'no'} actions in one turn")
        (action,) = found
        if action.kind != "backtrack" and not action.text:
            return Decision("invalid", f"empty <{action.kind}>")
        return action

    def check(self, trajectory: Trajectory) -> str:
        """The first way in which the policy left the grammar, or "".

        Every turn is one <think> and then one action that could be carried out, with nothing but
        white space between; the last action is an answer or a refusal.
        """
        kind = ""
        for action in trajectory.actions:
            if kind in ("answer", "refuse"):
                return f"something follows the {kind}"
            fault = self._check_turn(trajectory.segments[action.segment])
            if fault or action.kind == "invalid":
                return fault or action.text
            kind = action.kind
        return "" if kind in ("answer", "refuse") else "neither an answer nor a refusal"

    def _check_turn(self, segment: Segment) -> str:
        decision = self.read(segment.text)
        if decision.kind == "invalid":
            return decision.text
        blocks = find_tags(segment.text, self.tags)
        loose = outside(segment.text, blocks)
        if decision.kind == "backtrack":
            if not segment.text.rstrip().endswith(BACKTRACK):
                return f"something follows {BACKTRACK}"
            loose = loose.replace(BACKTRACK, "").strip()
        if loose:
            return f"text outside the tags: {loose[:40]!r}"
        names = [block.name for block in blocks]
        wanted = ["think"] if decision.kind == "backtrack" else ["think", decision.kind]
        return "" if names == wanted else f"not one <think> and then an action: {', '.join(names) or 'none'}"

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """Search hop by hop and answer, sometimes after a detour; refuse an unanswerable question.

        None if a hop of an answerable question was missed.
        """
        if not question.answerable:
            return self._refuse(question, shown)
        if question.hops and self._takes_detour(question):
            if not shown:
                return f"<think>{self._plan(question)}</think><search>{question.text}</search>"
            found = {hit.passage.id for hit in shown[0]}
            if found and question.hops[0].passage_id not in found:
                return f"<think>{USELESS}</think>{BACKTRACK}"
            shown = shown if found else shown[1:]
        return write_turn(self.script, "", question, shown)

    def _refuse(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str:
        """Follow the hops if there are any, else search for the whole question; then refuse."""
        if question.hops and len(shown) < len(question.hops):
            turn = write_turn(self.script, "", replace(question, answers=(UNANSWERABLE,)), shown)
            if turn is not None:
                return turn
        if not shown:
            return f"<think>{self._plan(question)}</think><search>{question.text}</search>"
        return f"<think>{USELESS}</think><refuse>{UNANSWERABLE}</refuse>"

    def _plan(self, question: Question) -> str:
        return self.script.plan.format(need=question.text.rstrip("?"))

    def _takes_detour(self, question: Question) -> bool:
        """A fixed share of the questions, the same ones in every run."""
        digest = hashlib.blake2b(f"{question.dataset}/{question.id}".encode(), digest_size=4).digest()
        return int.from_bytes(digest, "big") < self.detours * 2**32
