"""Search agents released by others, in the layout of their own evaluation scripts, so that their checkpoints can run.

R1-Searcher (Song et al. 2025), one turn:

    policy  …<|begin_of_query|> capital Peru<|end_of_query|>
    world   <|begin_of_documents|> (1)Peru … <|end_of_documents|>
    policy  …</think> <answer> Lima </answer>

ReSearch (Chen et al. 2025) searches in <search>, reads <result> and boxes its answer inside <answer>.
SimpleDeepSearcher is a prompt of the protocol search-o1.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sleuth.checked import NonEmpty
from sleuth.episodes.protocol import AgentProtocol, Chat
from sleuth.episodes.record import Decision
from sleuth.protocols.prompted.search_o1 import boxed
from sleuth.text import fill
from sleuth.types import Hit, Question, Trajectory


@dataclass(frozen=True)
class MarkedSearch(AgentProtocol):
    """An agent that writes a query between two marks and reads results between two others."""

    instruction: NonEmpty
    """The prompt; {question} is replaced, or the question is a user turn of its own after this system turn."""
    query: tuple[str, str] = ("<search>", "</search>")
    result: tuple[str, str] = ("<result>", "</result>")
    passage: str = "({number}){title} {text}"
    """One passage of a result; {number}, {title} and {text} are replaced."""
    answer: Literal["tag", "box"] = "tag"
    r"""The answer is the body of <answer>, or the \boxed{} in it."""
    is_plain: bool = False
    """Whether the prompt is plain text without the chat template, as base models get it."""

    tags = ("answer",)

    @property
    def stops(self) -> tuple[str, ...]:
        """The end of a query or an answer."""
        return (self.query[1], "</answer>")

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        if "{question}" not in self.instruction:
            return (("system", self.instruction), ("user", question.text))
        return (("text" if self.is_plain else "user", fill(self.instruction, question=question.text)),)

    def show(self, hits: Sequence[Hit]) -> str:
        """The passages, one a line, between the marks of a result; "None" without any."""
        passages = [hit.passage for hit in hits]
        lines = [
            fill(self.passage, number=str(number), title=p.title, text=p.text).strip()
            for number, p in enumerate(passages, 1)
        ]
        shown = "\n".join(lines) or "None"
        return f"\n\n{self.result[0]}\n{shown}\n{self.result[1]}\n\n"

    def read(self, text: str) -> Decision:
        """The last answer if the turn holds one, else the query it ends with."""
        answers = re.findall(r"<answer>((?:(?!<answer>).)*?)</answer>", text, re.DOTALL)
        if answers:
            answer = boxed(answers[-1])[0] if self.answer == "box" else answers[-1].strip()
            return Decision("answer", answer) if answer else Decision("invalid", "empty answer")
        opening, closing = map(re.escape, self.query)
        queries = re.findall(rf"{opening}((?:(?!{opening}).)*?){closing}", text, re.DOTALL)
        query = " ".join(queries[-1].replace('"', "").replace("...", "").split()) if queries else ""
        return Decision("search", query) if query else Decision("invalid", "neither a query nor an answer")

    def check(self, trajectory: Trajectory) -> str:
        """ "" if every turn searched or answered, and the last one answered."""
        bad = next((action.text for action in trajectory.actions if action.kind == "invalid"), "")
        return bad or ("" if trajectory.answer is not None else "no answer")
