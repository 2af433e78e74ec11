"""First sentences and stated answers of free reasoning: the whole grammar of methods without tags.

Both rules read model-written text only. Source of the mark "answer is": IRCoT (Trivedi et al. 2023).
"""

import re

_MARK = re.compile(r"\banswer is\b\s*:?", re.IGNORECASE)
# No sentence ends at an initial or a title: "J. R. R. Tolkien", "St. Louis".
_END = re.compile(r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|Jr|Sr|vs)\.)(?<!\bMrs\.)\s+")
_WRAPPING = " \t*_`\"'“”"


def first_line(text: str) -> str:
    """The first line with any text; "" if there is none."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def first_sentence(text: str) -> str:
    """The first sentence of the first line with any text; "" if there is none."""
    return _END.split(first_line(text), maxsplit=1)[0].strip()


def states_answer(text: str) -> bool:
    """Whether the text holds the mark "answer is"."""
    return _MARK.search(text) is not None


def stated_answer(text: str) -> str:
    """The rest of the sentence after the last "answer is"; "" if there is none."""
    marks = list(_MARK.finditer(text))
    return short_answer(text[marks[-1].end() :]) if marks else ""


def short_answer(text: str) -> str:
    """The first sentence after a mark, without quotation marks, emphasis and full stop."""
    body = first_sentence(text.strip(_WRAPPING)).strip(_WRAPPING)
    # The full stop of the sentence goes, the one of "U.S." stays.
    return body[:-1].strip(_WRAPPING) if body.endswith(".") and body.count(".") == 1 else body
