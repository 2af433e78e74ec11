"""Self-Ask: follow-up questions split the question, and each is answered before the next.

    prompt  … worked examples … Question: … Are follow up questions needed here:
    policy  Yes.\\nFollow up: Who wrote it?\\nIntermediate answer:
    world   Doc 1(Title: …) …\\nIntermediate answer:
    policy  Ann.\\nSo the final answer is: Ann

Source: Press et al. 2023, §3 and "self-ask with a search engine": a follow-up goes to the search
engine. Theirs inserts the engine's own short answer; a passage retriever has none, so passages
are shown and the model writes the intermediate answer itself.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from sleuth.episodes.protocol import AgentProtocol, Chat
from sleuth.episodes.record import Decision
from sleuth.protocols.prompted.reasoning import first_sentence, short_answer
from sleuth.types import Hit, Question, Trajectory

_MARK = re.compile(r"follow[ -]?up:|final answer is\b:?", re.IGNORECASE)

# Worked examples of our own; the paper has four, with a comparison and a yes-or-no question among them.
EXAMPLES = (
    """Question: Which river runs through the capital of the country where Frédéric Chopin was born?
Are follow up questions needed here: Yes.
Follow up: In which country was Frédéric Chopin born?
Intermediate answer: Poland.
Follow up: What is the capital of Poland?
Intermediate answer: Warsaw.
Follow up: Which river runs through Warsaw?
Intermediate answer: The Vistula.
So the final answer is: Vistula""",
    """Question: Which mountain is higher, Mont Blanc or Mount Elbrus?
Are follow up questions needed here: Yes.
Follow up: How high is Mont Blanc?
Intermediate answer: About 4,806 metres.
Follow up: How high is Mount Elbrus?
Intermediate answer: 5,642 metres.
So the final answer is: Mount Elbrus""",
    """Question: Were the inventor of dynamite and the founder of IKEA born in the same country?
Are follow up questions needed here: Yes.
Follow up: In which country was the inventor of dynamite, Alfred Nobel, born?
Intermediate answer: Sweden.
Follow up: In which country was the founder of IKEA, Ingvar Kamprad, born?
Intermediate answer: Sweden.
So the final answer is: yes""",
    """Question: What is the chemical symbol of gold?
Are follow up questions needed here: No.
So the final answer is: Au""",
)
NEEDED = "Are follow up questions needed here:"
INTERMEDIATE = "Intermediate answer:"


@dataclass(frozen=True)
class SelfAsk(AgentProtocol):
    """Follow-up questions as searches."""

    instruction: str = (
        "Answer the question by asking follow up questions where they help, in exactly the form of the examples. "
        "After a follow up question, search results come; give the intermediate answer in a few words."
    )
    shots: Annotated[int, Meta(ge=0, le=len(EXAMPLES))] = len(EXAMPLES)
    """Worked examples in the prompt."""

    # A turn ends with its follow-up, or where the model invents a next question.
    stops = (INTERMEDIATE, "\nQuestion:")

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        parts = [self.instruction, *EXAMPLES[: self.shots], f"Question: {question.text}\n{NEEDED}"]
        return (("user", "\n\n".join(parts)),)

    def read(self, text: str) -> Decision:
        """The first follow-up question or final answer; later text is ignored."""
        mark = _MARK.search(text)
        if mark is None:
            return Decision("invalid", "neither a follow up question nor a final answer")
        body = text[mark.end() :]
        for stop in self.stops:  # the turn includes the stop string that ended it
            body = body.partition(stop)[0]
        if mark[0].lower().startswith("final"):
            answer = short_answer(body)
            return Decision("answer", answer) if answer else Decision("invalid", "empty final answer")
        query = first_sentence(body)
        return Decision("search", query) if query else Decision("invalid", "empty follow up question")

    def show(self, hits: Sequence[Hit]) -> str:
        """Passages, one a line, and the place for the intermediate answer."""
        return f"\n{super().show(hits) or 'Nothing was found.'}\n{INTERMEDIATE}"

    def check(self, trajectory: Trajectory) -> str:
        """ "" if the policy came to a final answer without a turn that could not be read."""
        bad = next((action.text for action in trajectory.actions if action.kind == "invalid"), "")
        return bad or ("" if trajectory.answer is not None else "no final answer")
