"""Search-o1: reasoning that searches by itself; results are condensed in a context apart from the reasoning.

    prompt  … Question: …
    policy  … <|begin_search_query|>capital of Peru<|end_search_query|>
    prompt  reasoning so far, query, passages                              a new context
    policy  Lima is the capital …                                          reason-in-documents
    prompt  … Question: … │ the first turn │ the condensed result          the reasoning continues
    policy  … \\boxed{Lima}

Source: Li et al. 2025, §3 (agentic search, Reason-in-Documents) and the released prompts for the
marks. Turns alternate: reasoning, condensing, reasoning, …
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.checked import NonNegative
from sleuth.episodes.protocol import Chat
from sleuth.episodes.record import Decision
from sleuth.protocols.prompted.fresh_contexts import FreshContexts
from sleuth.text import fill, neutralise
from sleuth.types import Hit, Question, Trajectory

QUERY = ("<|begin_search_query|>", "<|end_search_query|>")
RESULT = ("<|begin_search_result|>", "<|end_search_result|>")
INFORMATION = "Final Information"
NOTHING = "No helpful information found."
_QUERIES = re.compile(
    f"{re.escape(QUERY[0])}((?:(?!{re.escape(QUERY[0])}).)*?){re.escape(QUERY[1])}", re.DOTALL
)


@dataclass(frozen=True)
class SearchO1(FreshContexts):
    """Agentic search with reason-in-documents."""

    instruction: str = (
        "Answer the question by reasoning step by step. Where you lack knowledge, search: write "
        f"{QUERY[0]} your query {QUERY[1]} and stop; helpful information comes back between {RESULT[0]} and {RESULT[1]}. "
        "You may search at most {max_searches} times, each time for one thing. When you know enough, finish with the "
        "answer in a few words inside \\boxed{}."
    )
    """"{max_searches}" is replaced, and "{question}", which otherwise follows."""
    digest_instruction: str = (
        "Read the passages that a search has found for someone who is reasoning towards an answer. Pick out what helps "
        f'the reasoning and fits the query; leave the rest. Write "{INFORMATION}:" and then what helps, in a few '
        f'sentences; if nothing does, write "{INFORMATION}: {NOTHING}"'
    )
    max_searches: NonNegative = 10
    """Most searches; scale.max_steps must be at least 2·max_searches + 1."""

    stops = (QUERY[1],)

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        ask = "" if "{question}" in self.instruction else "\n\nQuestion: {question}"
        slots = {"max_searches": str(self.max_searches), "question": question.text}
        return (("user", fill(self.instruction + ask, **slots)),)

    def read(self, text: str) -> Decision:
        """The last query if the turn ends with it, else the last boxed answer."""
        queries = list(_QUERIES.finditer(text))
        answer, place = boxed(text)
        if queries and queries[-1].start() > place:
            query = " ".join(queries[-1][1].split())
            return Decision("search", query) if query else Decision("invalid", "empty search query")
        if place < 0:
            return Decision("invalid", "neither a search nor a boxed answer")
        return Decision("answer", answer) if answer else Decision("invalid", "empty boxed answer")

    def decide(self, question: Question, turns: Sequence[str]) -> Decision:
        """Every second turn condenses passages; the others search or answer."""
        if len(turns) % 2 == 0:
            return Decision("digest", _information(turns[-1]))
        decision = self.read(turns[-1])
        if decision.kind == "search" and len(turns) > 2 * self.max_searches:
            return Decision("invalid", "no searches were left")
        return decision

    def passages(self, turns: Sequence[str], shown: Sequence[Sequence[Hit]]) -> Sequence[Hit]:
        """The latest hits, to be condensed; none for the reasoning."""
        return shown[-1] if len(turns) % 2 and shown else ()

    def next_prompt(self, question: Question, hits: Sequence[Hit], turns: Sequence[str]) -> Chat:
        """Passages to condense, or the reasoning with a condensed result after each search."""
        if len(turns) % 2:
            reasoning = "\n".join(turns[::2])
            text = (
                f"{self.digest_instruction}\n\nReasoning so far:\n{neutralise(reasoning).strip()}\n\n"
                f"Query: {neutralise(self.read(turns[-1]).text)}\n\nPassages:\n{self.show(hits) or 'Nothing was found.'}"
            )
            return (("user", text),)
        history = list(self.prompt(question))
        for number, (reasoning, digest) in enumerate(zip(turns[::2], turns[1::2], strict=True), 1):
            left = "" if number < self.max_searches else "\nNo searches are left: finish with the answer."
            result = f"{RESULT[0]}{neutralise(_information(digest))}{RESULT[1]}{left}"
            history += [("assistant", reasoning), ("user", result)]
        return tuple(history)

    def check(self, trajectory: Trajectory) -> str:
        """ "" if the policy came to a boxed answer without a turn that could not be read."""
        bad = next((action.text for action in trajectory.actions if action.kind == "invalid"), "")
        return bad or ("" if trajectory.answer is not None else "no boxed answer")


def _information(digest: str) -> str:
    """The text after the last "Final Information", or the whole reply without it; never empty."""
    body = digest.rpartition(INFORMATION)[2]
    return " ".join(body.split()).strip("*: ") or NOTHING


def boxed(text: str) -> tuple[str, int]:
    r"""The body of the last \boxed{…}, its braces balanced, and where it begins; ("", -1) without one."""
    place = text.rfind(r"\boxed{")
    depth = 0
    for index in range(place + len(r"\boxed"), len(text)) if place >= 0 else ():
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if not depth:
            body = text[place + len(r"\boxed{") : index]
            return re.sub(r"\\text\{([^{}]*)\}", r"\1", body).strip(), place
    return "", -1
