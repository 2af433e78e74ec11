"""The settings a result depends on, as plain values: parts, limits, decoding, retrieval, questions, versions.

Two results are comparable only if these agree; a result file carries them all.
"""

import hashlib
import platform
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import sleuth
from sleuth.checked import describe
from sleuth.episodes.world import World
from sleuth.metrics.answers import rules_of
from sleuth.rewards.base import Reward
from sleuth.types import Question

PACKAGES = ("torch", "transformers", "tantivy", "numpy", "faiss-cpu", "httpx")


def settings_of(
    questions: Sequence[Question],
    world: World,
    reward: Reward | None,
    perturbation: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Everything that decides the figures, except the versions; `perturbation` is what robustness runs change."""
    engine, sampling, datasets = world.engine, world.sampling, sorted({q.dataset for q in questions})
    settings = {
        "model": engine.name,
        "weights": engine.fingerprint(),
        "dataset": "+".join(datasets),
        "questions": {"n": len(questions), "sha256": fingerprint(questions)},
        "rules": {
            name: {"name": rules.name, "normaliser": rules.normaliser, "source": rules.source}
            for name, rules in ((name, rules_of(name)) for name in datasets)
        },
        "protocol": describe(world.protocol),
        "retriever": dict(sorted(world.retriever.identity().items())),
        "limits": describe(world.limits),
        "decoding": {
            "method": "greedy" if sampling.temperature == 0 else "sampling",
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
        },
        "reward": None if reward is None else describe(reward),
    }
    return settings | ({"perturbation": dict(perturbation)} if perturbation else {})


def fingerprint(questions: Sequence[Question]) -> str:
    """SHA-256 over questions and accepted answers, whatever their order."""
    rows = sorted((q.dataset, q.id, q.text, list(q.answers), q.answerable, *q.history) for q in questions)
    return hashlib.sha256(repr(rows).encode("utf-8", "backslashreplace")).hexdigest()


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that are installed, and Sleuth's commit if it runs from a checkout."""
    found = {"python": platform.python_version(), "sleuth": sleuth.__version__}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    folder = Path(sleuth.__file__).parent
    # A package installed into an environment inside somebody's repository is not tracked by it.
    if _git(folder, "ls-files", "--", "."):
        commit = _git(folder, "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty=+changes")
        found |= {"commit": commit} if commit else {}
    return found


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def conflicts(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Dotted names of the settings that keep an earlier measurement from being continued, in order.

    A model folder may have moved: another name is accepted if the weights are equal and can be seen.
    """
    names = differing(earlier, now)
    return [] if names == ["model"] and now["weights"] else names


def differing(first: Mapping[str, Any], second: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Dotted names of the settings that differ, in order."""
    names: list[str] = []
    for key in sorted({*first, *second}):
        a, b = first.get(key), second.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            names += differing(a, b, f"{prefix}{key}.")
        elif a != b:
            names.append(f"{prefix}{key}")
    return names
