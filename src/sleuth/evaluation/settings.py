"""What a result depends on, as plain values: parts, limits, decoding, retrieval, questions, versions.

Two results may stand in one column only if these agree; a result file carries them all.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import sleuth
from sleuth.engines.base import Engine, Sampling
from sleuth.errors import ConfigError
from sleuth.metrics.answers import RULES, Rules, rules_for
from sleuth.protocols.base import AgentProtocol
from sleuth.retrievers.base import Retriever
from sleuth.rewards.base import Reward
from sleuth.rollouts.limits import Limits
from sleuth.types import Question

PACKAGES = {
    "sleuth": "sleuth-rag",
    "torch": "torch",
    "transformers": "transformers",
    "tantivy": "tantivy",
    "numpy": "numpy",
    "faiss": "faiss-cpu",
    "httpx": "httpx",
}
"""Whose versions are recorded: name in the result → distribution."""


def settings_of(
    questions: Sequence[Question],
    *,
    protocol: AgentProtocol,
    engine: Engine,
    retriever: Retriever,
    limits: Limits,
    sampling: Sampling,
    reward: Reward | None,
    perturbation: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Everything that decides the figures, except the versions of the software.

    `perturbation` says what was changed on purpose (a robustness run); it is absent where nothing was.
    """
    settings = {
        "model": engine.name,
        "weights": engine.fingerprint(),
        "dataset": "+".join(sorted({question.dataset for question in questions})),
        "questions": {"n": len(questions), "sha256": fingerprint(questions)},
        "rules": {name: _rules(name) for name in sorted({question.dataset for question in questions})},
        "protocol": describe(protocol),
        "retriever": dict(sorted(retriever.identity().items())),
        "limits": describe(limits),
        "decoding": {
            "method": "greedy" if sampling.temperature == 0 else "sampling",
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        },
        "reward": None if reward is None else describe(reward),
    }
    return settings | ({"perturbation": dict(perturbation)} if perturbation else {})


def rules_of(dataset: str) -> Rules:
    """The data set's rules; the default ones, so named in the result, for a data set of the user's own."""
    try:
        return rules_for(dataset)
    except ConfigError:
        return RULES["default"]


def _rules(dataset: str) -> dict[str, str]:
    rules = rules_of(dataset)
    return {"name": rules.name, "normaliser": rules.normaliser, "source": rules.source}


def fingerprint(questions: Sequence[Question]) -> str:
    """SHA-256 over what is asked and accepted, whatever the order of the questions."""
    rows = sorted((q.dataset, q.id, q.text, list(q.answers), q.answerable) for q in questions)
    return hashlib.sha256(repr(rows).encode("utf-8", "backslashreplace")).hexdigest()


def describe(part: Any) -> Any:
    """A part's class name and settings, nested parts included, as plain values."""
    if is_dataclass(part) and not isinstance(part, type):
        named = {f.name: describe(getattr(part, f.name)) for f in fields(part)}
        return {"part": type(part).__qualname__} | named
    if isinstance(part, Mapping):
        return {str(name): describe(value) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [describe(item) for item in part]
    if part is None or isinstance(part, str | int | float | bool):
        return part
    return str(part) if isinstance(part, Path) else {"part": type(part).__qualname__}


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that are installed, and Sleuth's commit if it runs from a checkout."""
    found = {"python": platform.python_version()}
    for name, distribution in PACKAGES.items():
        try:
            found[name] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    commit = source_commit(Path(sleuth.__file__).parent)
    return found | ({"commit": commit} if commit else {})


def source_commit(folder: Path) -> str:
    """The commit of a checkout that tracks `folder`, with "+changes" if its files differ; "" if none does.

    A package installed into an environment that lies inside somebody's repository is not tracked by it.
    """
    tracked = _git(folder, "ls-files", "--", ".")
    if not tracked:
        return ""
    commit = _git(folder, "rev-parse", "HEAD")
    return commit + ("+changes" if commit and _git(folder, "status", "--porcelain", "--", ".") else "")


def _git(folder: Path, *arguments: str) -> str:
    """What git prints; "" if git is not there or does not succeed."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def differing(first: Mapping[str, Any], second: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Dotted names of settings that are not the same on both sides, in order."""
    names: list[str] = []
    for key in sorted({*first, *second}):
        a, b = first.get(key), second.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            names += differing(a, b, f"{prefix}{key}.")
        elif a != b:
            names.append(f"{prefix}{key}")
    return names
