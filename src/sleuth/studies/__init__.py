"""Studies: every table and figure of the five papers, listed, planned, run and set against the published figures."""

from pathlib import Path

from sleuth.errors import ConfigError
from sleuth.registry import nearest, resolve, user_module
from sleuth.studies.study import Study

STUDIES = {
    "eval-rar": "sleuth.studies.papers.eval_rar:STUDIES",
    "evinote-rag": "sleuth.studies.papers.evinote_rag:STUDIES",
    "arena": "sleuth.studies.papers.arena:STUDIES",
    "eviomni": "sleuth.studies.papers.eviomni:STUDIES",
    "evo-rag": "sleuth.studies.papers.evo_rag:STUDIES",
}
"""Paper → its tables and figures, in the order of the paper."""


def all_studies() -> list[Study]:
    """Every table and figure."""
    return [study for paper in STUDIES for study in resolve("studies", STUDIES, paper)]


def load_study(spec: str) -> Study:
    """The study of a name such as "eval-rar/table-2", or STUDY of a user's .py file. Raises ConfigError."""
    if spec.endswith(".py"):
        return _from_file(Path(spec))
    known = {study.name: study for study in all_studies()}
    if spec not in known:
        raise ConfigError(f"unknown study {spec!r}{nearest(spec, known)}")
    return known[spec]


def _from_file(path: Path) -> Study:
    study = getattr(user_module(path, "study"), "STUDY", None)
    if not isinstance(study, Study):
        raise ConfigError(f"{path} defines no STUDY")
    return study
