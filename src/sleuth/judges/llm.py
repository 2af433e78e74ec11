"""LLM judge: a greedy yes or no by any engine or endpoint, cached on disk.

A reply that is not plainly yes or no is a missing verdict (None), never a no. Only plain verdicts are
cached, under a hash of model, weights, prompt and settings, so that every run gets the same verdict.
"""

import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sleuth.checked import Checked, NonEmpty, Positive, PositiveFloat
from sleuth.engines import open_engine
from sleuth.engines.base import Engine, Message, Request, Sampling
from sleuth.errors import EngineError, JudgeError
from sleuth.judges.base import Judge
from sleuth.storage import cache_folder, whole_file
from sleuth.text import fill, neutralise

SYSTEM = (
    "You are a strict and careful judge. Reply with one word: yes or no."  # Unless `ask` is given another.
)
ENTAILMENT = (
    "Text:\n{premise}\n\nClaim:\n{hypothesis}\n\n"
    "Does the text alone, without any other knowledge, show that the claim is true? Reply yes or no."
)
"""Prompt of `entailment`."""

_THOUGHT = re.compile(r"^\s*<think>.*?</think>", re.DOTALL)
_VERDICT = re.compile(
    r"^[\s*_\"'(]*(?:(?:the\s+)?(?:final\s+)?(?:answer|verdict|judg[e]?ment)\s*(?:is\s*:?|:)[\s*_\"'(]*)?(yes|no)\b(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_OTHER_VERDICT = re.compile(r"^[\s,./|;-]*(?:or\s+)?(?:yes|no)\b", re.IGNORECASE)


@dataclass(frozen=True)
class LLMJudge(Checked, Judge):
    """Verdicts of a language model."""

    model: NonEmpty
    """An engine: "openai:<base_url>#<model>", a local folder, a hub name or "smollm2-135m-instruct"."""
    max_new_tokens: Positive = 16
    """Tokens of a reply; a model that writes its thoughts first needs hundreds."""
    batch: Positive = 64
    """Prompts per call of the engine; the verdicts of a batch are kept if a later one fails."""
    timeout_s: PositiveFloat = 60.0
    """Seconds per request to an endpoint; local models have no limit."""
    attempts: Positive = 3
    """Tries per request to an endpoint that is busy or silent."""
    remember: bool = True
    """Cache verdicts on disk."""

    def open(self) -> None:
        _ = self._engine

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        # What is judged was written by a policy or a stranger: it must not spell a turn of its own.
        prompts = [fill(ENTAILMENT, premise=neutralise(p), hypothesis=neutralise(h)) for p, h in pairs]
        return [None if verdict is None else float(verdict) for verdict in self.ask(prompts)]

    def ask(self, prompts: Sequence[str], system: str = SYSTEM) -> list[bool | None]:
        """The verdict on each yes-or-no question, in order; None without a clear one.

        `system`: the system turn, "" for none. Equal prompts are asked once. If the model fails, the remaining
        verdicts are None. Raises JudgeError if there is no verdict at all.
        """
        if not prompts:
            return []
        keys = {prompt: self._key(prompt, system) for prompt in dict.fromkeys(prompts)}
        known = {prompt: self._cached(key) for prompt, key in keys.items()}
        unknown = [prompt for prompt, verdict in known.items() if verdict is None]
        for start in range(0, len(unknown), self.batch):
            asked = unknown[start : start + self.batch]
            try:
                replies = self._replies(asked, system)
            except EngineError as error:
                if all(verdict is None for verdict in known.values()):
                    raise JudgeError(f"judge {self.model!r} failed: {error}") from error
                break
            for prompt, reply in zip(asked, replies, strict=True):
                known[prompt] = read_verdict(reply)
                self._cache(keys[prompt], known[prompt])
        return [known[prompt] for prompt in prompts]

    @cached_property
    def _engine(self) -> Engine:
        is_remote = self.model.startswith("openai:")
        options = {"timeout_s": self.timeout_s, "attempts": self.attempts} if is_remote else {}
        try:
            return open_engine(self.model, **options)
        except EngineError as error:
            raise JudgeError(str(error)) from error

    def _replies(self, prompts: Sequence[str], system: str) -> list[str]:
        engine = self._engine
        opening = [Message("system", system)] if system else []
        conversations = [(*opening, Message("user", prompt)) for prompt in prompts]
        requests = [Request(engine.tokenizer.chat(turns), messages=turns) for turns in conversations]
        sampling = Sampling(max_new_tokens=self.max_new_tokens, temperature=0.0)
        return [completion.text for completion in engine.generate(requests, sampling)]

    def _key(self, prompt: str, system: str) -> str:
        asked = (self._engine.name, self._engine.fingerprint(), system, prompt, self.max_new_tokens)
        return hashlib.blake2b(repr(asked).encode("utf-8", "backslashreplace"), digest_size=20).hexdigest()

    def _file(self, key: str) -> Path:
        return cache_folder() / "verdicts" / key[:2] / key[2:]

    def _cached(self, key: str) -> bool | None:
        try:
            return {b"yes": True, b"no": False}.get(self._file(key).read_bytes()) if self.remember else None
        except OSError:
            return None

    def _cache(self, key: str, verdict: bool | None) -> None:
        if verdict is not None and self.remember:
            # A cache that cannot be written costs only time.
            with suppress(OSError), whole_file(self._file(key)) as file:
                file.write(b"yes" if verdict else b"no")


def read_verdict(reply: str) -> bool | None:
    """True or False if the reply is plainly a yes or a no, else None.

    The first word decides, after "The answer is" or a closed <think> block. Punctuation or nothing must
    follow it, so that "No idea", "Yes or no" and "yes/no" are no verdicts.
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
