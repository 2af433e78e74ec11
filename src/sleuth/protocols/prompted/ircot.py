"""IRCoT: every sentence of the reasoning is the next search; a reader then answers from all passages.

    prompt  passages of the question … Question: … Reasoning so far: (none)
    policy  The film was made by Ann.                       its first sentence is the next search
    prompt  passages of both searches … Reasoning so far: The film was made by Ann.
    policy  So the answer is: Rome.                         ends the reasoning
    prompt  all passages … Question: …                      the reader
    policy  … So the answer is: Rome.

Source: Trivedi et al. 2023, §3: retrieve with the question; reason one sentence, retrieve with
it, until "answer is:" or 8 sentences; at most 15 paragraphs; a separate reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.checked import Positive
from sleuth.episodes.protocol import Chat
from sleuth.episodes.record import Decision
from sleuth.protocols.prompted.direct import ChainOfThought
from sleuth.protocols.prompted.fresh_contexts import READER, FreshContexts
from sleuth.protocols.prompted.reasoning import first_sentence, states_answer
from sleuth.text import neutralise
from sleuth.types import Hit, Question


@dataclass(frozen=True)
class IRCoT(FreshContexts, ChainOfThought):
    """Interleaved retrieval and reasoning; `instruction` is the reader's."""

    instruction: str = READER
    step_instruction: str = (
        "Answer the question with the help of the passages, one step at a time. Write only the next sentence of the "
        'reasoning, and nothing after it. If the reasoning is complete, write "So the answer is:" and the answer.'
    )
    max_sentences: Positive = 8
    """Most sentences of reasoning; with the reader's turn one less than scale.max_steps."""
    max_passages: Positive = 15
    """Most distinct passages in a prompt, those of the latest search first."""

    retrieves_first = True

    def prompt(self, question: Question, hits: Sequence[Hit] = ()) -> Chat:
        """The context of the first sentence."""
        return self.next_prompt(question, hits, ())

    def decide(self, question: Question, turns: Sequence[str]) -> Decision:
        """A search with the latest sentence; "reasoned" at the end of the reasoning; then the reader's answer."""
        if self._is_reasoned(turns[:-1]):
            return self.read(turns[-1])
        sentence = first_sentence(turns[-1])
        return Decision("reasoned" if self._is_reasoned(turns) else "search", sentence)

    def passages(self, turns: Sequence[str], shown: Sequence[Sequence[Hit]]) -> Sequence[Hit]:
        """Every passage found so far, the latest search's first, so that the oldest are dropped first."""
        distinct = {hit.passage.id: hit for hits in reversed(shown) for hit in hits}
        return list(distinct.values())[: self.max_passages]

    def next_prompt(self, question: Question, hits: Sequence[Hit], turns: Sequence[str]) -> Chat:
        """Passages, question and the reasoning so far; for the reader, passages and question."""
        if self._is_reasoned(turns):
            return ChainOfThought.prompt(self, question, hits)
        reasoning = " ".join(neutralise(first_sentence(turn)) for turn in turns) or "(none)"
        state = f"Question: {question.text}\nReasoning so far: {reasoning}\nNext sentence:"
        parts = [self.step_instruction, self.show(hits), state]
        return (("user", "\n\n".join(part for part in parts if part)),)

    def _is_reasoned(self, turns: Sequence[str]) -> bool:
        """Whether these turns are the whole reasoning: enough sentences, an answer, or an empty sentence."""
        sentences = [first_sentence(turn) for turn in turns]
        return len(turns) >= self.max_sentences or any(states_answer(s) or not s for s in sentences)
