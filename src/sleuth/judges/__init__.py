"""Judges: does this text support that claim? Name → part."""

from importlib.metadata import entry_points

from sleuth.errors import ConfigError
from sleuth.judges.base import Judge
from sleuth.registry import resolve

JUDGES: dict[str, str] = {
    "lexical": "sleuth.judges.lexical:LexicalJudge",
    "llm": "sleuth.judges.llm:LLMJudge",
    "nli": "sleuth.judges.nli:NLIJudge",
    "small": "sleuth.judges.nli:SmallJudge",
}


def open_judge(name: str) -> Judge:
    """Judge of "lexical", "small" (trained here), a plugin's name, "openai:<base_url>#<model>", or a classifier's folder or hub name.

    Its `open` or its first verdict loads the model. Raises ConfigError for an empty name.
    """
    if not name.strip():
        raise ConfigError("the judge's name is empty: lexical, small, openai:<url>#<model>, or a classifier")
    own = name in ("lexical", "small") or name in entry_points(group="sleuth.judges").names
    kind = resolve("judges", JUDGES, name if own else "llm" if name.startswith("openai:") else "nli")
    judge: Judge = kind() if own else kind(name)
    return judge
