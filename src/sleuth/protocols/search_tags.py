"""Tag grammar of Search-R1 and its relatives: think, search, read results, answer.

One episode, `note` being the tag that a method adds (none in Search-R1, <evaluate> in Eval-RAR):

    policy  <think>…</think><search>query</search>
    world   <information>Doc 1(Title: …) …</information>
    policy  <note>…</note><think>…</think><answer>…</answer>

Sources: Search-R1 (Jin et al. 2025), §3.2 and its released loop for the layout of results and
the reply to an invalid action; Eval-RAR, Algorithm 1, for the place of the note.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sleuth.episodes.passages import passage_lines
from sleuth.episodes.protocol import AgentProtocol, Chat
from sleuth.episodes.record import Decision
from sleuth.episodes.tags import Tag, find_tags
from sleuth.protocols.demonstration import Script, write_turn
from sleuth.types import Hit, Question, Segment, Trajectory


@dataclass(frozen=True)
class TaggedSearch(AgentProtocol):
    """Prompt and results of agents that search in tags."""

    instruction: str
    """The user turn; "{question}" is replaced by the question, or it is appended."""
    invalid_message: str = ""
    """Reply to a turn without a valid action; "" ends the episode."""
    script: Script = field(default_factory=Script)
    """Wording of warm-start demonstrations."""

    result = "information"

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        text = question.text if question.text.endswith("?") else f"{question.text}?"
        ask = "" if "{question}" in self.instruction else " Question: {question}"
        return (("user", (self.instruction + ask).replace("{question}", text)),)

    def show(self, hits: Sequence[Hit]) -> str:
        """Numbered passages, one a line, inside the result tag."""
        lines = passage_lines((hit.passage for hit in hits), always_titled=True)
        return f"\n\n<{self.result}>{lines}</{self.result}>\n\n"


@dataclass(frozen=True)
class SearchTags(TaggedSearch):
    """A multi-turn search agent whose turns end with a search or an answer."""

    note: str = ""
    """Tag the policy must write first after each result, "" for none."""
    think_before_note: bool = False
    """Whether a <think> may precede the note."""
    result: str = "information"
    """Tag around search results."""

    @property
    def stops(self) -> tuple[str, ...]:
        return ("</search>", "</answer>")

    @property
    def tags(self) -> tuple[str, ...]:
        return ("think", "search", *([self.note] if self.note else []), "answer")

    def read(self, text: str) -> Decision:
        """The last answer if the turn holds one, else its last search, else invalid with the reason."""
        blocks = find_tags(text, self.tags)
        for kind in ("answer", "search"):
            bodies = [block.body.strip() for block in blocks if block.name == kind]
            if bodies and bodies[-1]:
                return Decision(kind, bodies[-1])
            if bodies:
                return Decision("invalid", f"empty <{kind}>")
        return Decision("invalid", "neither <search> nor <answer>")

    def check(self, trajectory: Trajectory) -> str:
        """The first way in which the policy left the grammar, or "".

        Every turn is [note] [think] action with nothing but white space between; the note is
        required right after a result (with `think_before_note`, or a <think> after it) and
        nowhere else; the last action is an answer.
        """
        after_result = False
        last = ""
        for segment in trajectory.segments:
            if last == "answer" and segment.text.strip():
                return "something follows the answer"
            if segment.author == "world":
                # The text after a search is its result, even where another system wraps it otherwise.
                after_result = last == "search" or f"<{self.result}>" in segment.text
            elif segment.author == "policy":
                if fault := self._check_turn(segment, after_result):
                    return fault
                after_result, last = False, self.read(segment.text).kind
        return "" if last == "answer" else "no answer"

    def _check_turn(self, segment: Segment, after_result: bool) -> str:
        blocks = find_tags(segment.text, self.tags)
        if loose := outside(segment.text, blocks):
            return f"text outside the tags: {loose[:40]!r}"
        names = [block.name for block in blocks]
        if not names or names[-1] not in ("search", "answer"):
            return "a turn without <search> or <answer>"
        lead = names[:-1]
        if self.note and after_result:
            place = int(self.think_before_note and names[0] == "think")
            if names[place] != self.note:
                return f"no <{self.note}> after the result"
            lead = lead[place + 1 :]
        if lead not in ([], ["think"]):
            return f"unexpected order of tags: {', '.join(names)}"
        decision = self.read(segment.text)
        return decision.text if decision.kind == "invalid" else ""

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """Search hop by hop, cite the contribution of each result, then answer; None if a hop was missed."""
        return write_turn(self.script, self.note, question, shown)


@dataclass(frozen=True)
class ThinkThenAnswer(SearchTags):
    """R1 (DeepSeek-AI 2025) as Search-R1 trains it: the same grammar without a search."""

    tags = ("think", "answer")
    stops = ("</answer>",)

    def read(self, text: str) -> Decision:
        """The last answer, else invalid with the reason."""
        if not any(block.name == "answer" for block in find_tags(text, self.tags)):
            return Decision("invalid", "no <answer>")
        return super().read(text)

    def demonstrate(self, question: Question, shown: Sequence[Sequence[Hit]]) -> str | None:
        """The contribution of each gold hop, then the canonical answer; None without hops or an answer."""
        if not question.hops or not question.answers:
            return None
        steps = " ".join(f"{hop.need or hop.query}: {hop.answer}." for hop in question.hops)
        return f"<think>{steps}</think><answer>{question.answers[0]}</answer>"


def outside(text: str, blocks: Sequence[Tag]) -> str:
    """The text of a turn without its blocks."""
    rest, position = [], 0
    for block in blocks:
        opening = block.start - len(f"<{block.name}>")
        rest.append(text[position:opening])
        position = block.end + len(f"</{block.name}>")
    return re.sub(r"\s+", " ", " ".join([*rest, text[position:]])).strip()
