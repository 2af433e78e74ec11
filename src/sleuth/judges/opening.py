"""A judge by what a person calls it on the command line."""

from __future__ import annotations

from sleuth.errors import ConfigError
from sleuth.judges.base import Judge


def open_judge(name: str) -> Judge:
    """ "lexical", "small" (trained here), "openai:<base_url>#<model>", or a classifier's folder or hub name.

    Nothing is loaded before the first verdict is asked for. ConfigError for an empty name.
    """
    if not name.strip():
        raise ConfigError("the judge's name is empty: lexical, small, openai:<url>#<model>, or a classifier")
    if name == "lexical":
        from sleuth.judges.lexical import LexicalJudge

        return LexicalJudge()
    if name == "small":
        from sleuth.judges.small import SmallJudge

        return SmallJudge()
    if name.startswith("openai:"):
        from sleuth.judges.llm import LLMJudge

        return LLMJudge(name)
    from sleuth.judges.nli import NLIJudge

    return NLIJudge(name)
