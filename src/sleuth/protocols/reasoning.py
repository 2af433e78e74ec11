"""Reading free reasoning: its first sentence, and the answer after "the answer is".

Prompted methods have no tags, so that these two rules are their whole grammar. Both read
model-written text only. Source of the mark: IRCoT (Trivedi et al. 2023) and its relatives.
"""

from __future__ import annotations

import re

_MARK = re.compile(r"\banswer is\b\s*:?", re.IGNORECASE)
# No sentence ends at an initial or a title: "J. R. R. Tolkien", "St. Louis".
_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|Jr|Sr|vs)\.)(?<!\bMrs\.)\s+")
_WRAPPING = " \t*_`\"'“”"


def first_sentence(text: str) -> str:
    """The first sentence of the first line that says anything; "" if none does."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return _END.split(line, maxsplit=1)[0].strip()


def states_answer(text: str) -> bool:
    """Whether the reasoning has come to its "answer is"."""
    return _MARK.search(text) is not None


def stated_answer(text: str) -> str:
    """What follows the last "answer is", up to the end of its sentence; "" if nothing does."""
    marks = list(_MARK.finditer(text))
    return short_answer(text[marks[-1].end() :]) if marks else ""


def short_answer(text: str) -> str:
    """The first sentence of what follows a mark, without quotation marks, emphasis and full stop."""
    body = first_sentence(text.strip(_WRAPPING)).strip(_WRAPPING)
    # The full stop of the sentence goes, the one of "U.S." stays.
    return body[:-1].strip(_WRAPPING) if body.endswith(".") and body.count(".") == 1 else body
