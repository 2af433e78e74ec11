"""Record of a job: the recipe, index, demonstrations and earlier jobs that its folder was made with.

A folder's name holds a recipe's name and settings, not its values: without a record, a finished job would be taken for
one of another recipe or index.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sleuth.checked import describe
from sleuth.errors import DataError
from sleuth.evaluation.settings import differing
from sleuth.recipes import load_recipe
from sleuth.retrievers.index_files.manifest import MANIFEST
from sleuth.storage import read_json, write_json
from sleuth.studies.plan import Job
from sleuth.text import digest

JOB = "job.json"
"""Written into a job's folder when the job begins."""


def claim(job: Job, index: str) -> None:
    """Write the record of a job that begins."""
    if not (job.folder / JOB).exists():
        job.folder.mkdir(parents=True, exist_ok=True)
        write_json(job.folder / JOB, _record(job, index))


def changed(job: Job, index: str | None) -> str:
    """Differences between a job and the one that its folder was made with, in one line, or "".

    An index of None is not compared. A folder of an older version has a recipe at most.
    """
    before = _before(job)
    now = _record(job, index or "")
    compared = [name for name in before if index is not None or name != "index"]
    names = differing({n: before[n] for n in compared}, {n: now[n] for n in compared})
    if not names:
        return ""
    return (
        f"{job.folder} differs from this job in {', '.join(names)}: remove it, or choose another folder (-o)"
    )


def all_changed(jobs: Sequence[Job], index: str | None) -> dict[str, str]:
    """Why the folders of some jobs, and of those that follow from them, do not count; jobs are in a plan's order."""
    found: dict[str, str] = {}
    for job in jobs:
        earlier = [folder for folder in (job.weights, job.evidence) if str(folder) in found]
        if reason := f"needs {earlier[0]}" if earlier else changed(job, index):
            found[str(job.folder)] = reason
    return found


def _before(job: Job) -> Mapping[str, Any]:
    if (job.folder / JOB).exists():
        return read_json(job.folder / JOB)
    if job.kind == "train" and (job.folder / "recipe.json").exists():
        return {"recipe": describe(load_recipe(str(job.folder)))}
    return {}


def _record(job: Job, index: str) -> dict[str, Any]:
    return {
        "recipe": describe(job.recipe),
        "index": _passages(index) if job.recipe.retriever.unplaced else "",
        "weights": _digest(job.weights),
        "evidence": _digest(job.evidence),
        "demonstrations file": digest(job.lessons.read_text()).hex() if job.lessons else "",
    }


def _digest(folder: Path | None) -> str:
    path = folder / JOB if folder else None
    return digest(path.read_text()).hex() if path and path.exists() else ""


def _passages(index: str) -> str:
    """The passages of an index: their hash, or the name of a source that has no manifest."""
    try:
        manifest = read_json(Path(index) / MANIFEST)
    except DataError:
        return index
    return str(manifest.get("sha256", index))
