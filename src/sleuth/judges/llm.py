"""LLM judge: a yes or no by any engine or endpoint, greedy, remembered on disk by content.

A reply that is not plainly yes or no is no verdict (None): never a no, never a number. Only plain
verdicts are remembered, under a hash of model, weights, prompt and settings, so that the same
question to the same judge has the same answer in every run.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sleuth.engines import open_engine
from sleuth.engines.base import Engine, Message, Request, Sampling
from sleuth.errors import ConfigError, EngineError, JudgeError
from sleuth.judges.base import Judge
from sleuth.storage import cache_folder, whole_file

SYSTEM = "You are a strict and careful judge. Reply with one word: yes or no."
"""Opens every conversation with the judge."""
ENTAILMENT = (
    "Text:\n{premise}\n\nClaim:\n{hypothesis}\n\n"
    "Does the text alone, without any other knowledge, show that the claim is true? Reply yes or no."
)
"""Question of `entailment`."""

_THOUGHT = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)
_VERDICT = re.compile(
    r"^[\s*_\"'(]*(?:(?:the\s+)?(?:final\s+)?(?:answer|verdict|judg[e]?ment)\s*(?:is\s*:?|:)[\s*_\"'(]*)?(yes|no)\b(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_OTHER_VERDICT = re.compile(r"^[\s,./|;-]*(?:or\s+)?(?:yes|no)\b", re.IGNORECASE)


@dataclass(frozen=True)
class LLMJudge(Judge):
    """Verdicts of a language model."""

    model: str
    """An engine: "openai:<base_url>#<model>", a local folder, a hub name or "smollm2-135m-instruct"."""
    max_new_tokens: int = 16
    """Of a verdict; a model that thinks aloud first needs hundreds."""
    batch: int = 64
    """Questions asked at once; what a batch has answered is kept if a later one fails."""
    timeout_s: float = 60.0
    """Per request to an endpoint, in seconds; local models have no limit."""
    attempts: int = 3
    """Tries per request to an endpoint that is busy or silent."""
    remember: bool = True
    """Keep verdicts in the cache folder and never ask twice."""

    def __post_init__(self) -> None:
        if not self.model.strip():
            raise ConfigError("judge.model is empty: name a model or write openai:<base_url>#<model>")
        if min(self.max_new_tokens, self.batch, self.attempts) < 1 or not self.timeout_s > 0:
            raise ConfigError(
                "judge.max_new_tokens, judge.batch and judge.attempts must be at least 1 and "
                "judge.timeout_s positive"
            )

    @classmethod
    def over(cls, engine: Engine, *, max_new_tokens: int = 16, remember: bool = True) -> LLMJudge:
        """A judge that asks an engine that is already open."""
        judge = cls(engine.name, max_new_tokens=max_new_tokens, remember=remember)
        judge.__dict__["_engine"] = engine  # what the cached property would have opened
        return judge

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """1.0 for a yes, 0.0 for a no; see Judge."""
        prompts = [ENTAILMENT.replace("{premise}", p).replace("{hypothesis}", h) for p, h in pairs]
        return [None if verdict is None else float(verdict) for verdict in self.ask(prompts)]

    def ask(self, prompts: Sequence[str]) -> list[bool | None]:
        """The verdict on each yes-or-no question, in order; None where there is none.

        Equal questions are asked once. If the model fails, what it had not answered yet is None;
        JudgeError if not a single verdict is to be had.
        """
        if not prompts:
            return []
        keys = {prompt: self._key(prompt) for prompt in dict.fromkeys(prompts)}
        known = {prompt: self._recall(key) for prompt, key in keys.items()}
        open_prompts = [prompt for prompt, verdict in known.items() if verdict is None]
        for start in range(0, len(open_prompts), self.batch):
            asked = open_prompts[start : start + self.batch]
            try:
                replies = self._replies(asked)
            except EngineError as error:
                if all(verdict is None for verdict in known.values()):
                    raise JudgeError(f"judge {self.model!r} failed: {error}") from error
                break
            for prompt, reply in zip(asked, replies, strict=True):
                known[prompt] = read_verdict(reply)
                self._keep(keys[prompt], known[prompt])
        return [known[prompt] for prompt in prompts]

    @cached_property
    def _engine(self) -> Engine:
        options = {}
        if self.model.startswith("openai:"):
            options = {"timeout_s": self.timeout_s, "attempts": self.attempts}
        try:
            return open_engine(self.model, **options)
        except EngineError as error:
            raise JudgeError(str(error)) from error

    def _replies(self, prompts: Sequence[str]) -> list[str]:
        engine = self._engine
        conversations = [(Message("system", SYSTEM), Message("user", prompt)) for prompt in prompts]
        requests = [Request(engine.tokenizer.chat(turns), messages=turns) for turns in conversations]
        sampling = Sampling(max_new_tokens=self.max_new_tokens, temperature=0.0)
        return [completion.text for completion in engine.generate(requests, sampling)]

    def _key(self, prompt: str) -> str:
        asked = (self._engine.name, self._engine.fingerprint(), SYSTEM, prompt, self.max_new_tokens)
        return hashlib.blake2b(repr(asked).encode("utf-8", "backslashreplace"), digest_size=20).hexdigest()

    def _file(self, key: str) -> Path:
        return cache_folder() / "verdicts" / key[:2] / key[2:]

    def _recall(self, key: str) -> bool | None:
        if not self.remember:
            return None
        try:
            return {b"yes": True, b"no": False}.get(self._file(key).read_bytes())
        except OSError:
            return None

    def _keep(self, key: str, verdict: bool | None) -> None:
        """Write the verdict whole or not at all; a cache that cannot be written costs only time."""
        if verdict is None or not self.remember:
            return
        with contextlib.suppress(OSError), whole_file(self._file(key)) as file:
            file.write(b"yes" if verdict else b"no")


def read_verdict(reply: str) -> bool | None:
    """True or False if the reply is plainly a yes or a no, else None.

    The first word decides, after "The answer is" or a closed <think> block if any; it must stand
    alone or before punctuation, so that "No idea", "Yes or no" and "yes/no" are no verdicts.
    """
    found = _VERDICT.match(_THOUGHT.sub("", reply))
    if found is None:
        return None
    rest = found["rest"]
    if rest[:1] == " " and rest.strip() and rest.lstrip()[0].isalnum():
        return None
    if rest[:1] in {"-", "'", "’"} or _OTHER_VERDICT.match(rest):
        return None
    return found[1].lower() == "yes"
