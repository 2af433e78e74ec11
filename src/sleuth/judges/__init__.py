"""Judges: does this text support that claim? Name → part."""

from __future__ import annotations

JUDGES: dict[str, str] = {
    "lexical": "sleuth.judges.lexical:LexicalJudge",
    "llm": "sleuth.judges.llm:LLMJudge",
    "nli": "sleuth.judges.nli:NLIJudge",
    "small": "sleuth.judges.small:SmallJudge",
}
