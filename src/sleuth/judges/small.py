"""Small judge: all-MiniLM-L6-v2 (22 M parameters), fine-tuned on labelled pairs on this machine.

No package contains a small NLI model, so `sleuth judge train` makes one, in the cache folder unless
another place is named. Its weights are never part of the repository.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sleuth.errors import JudgeError
from sleuth.judges.base import Judge
from sleuth.judges.nli import NLIJudge
from sleuth.storage import cache_folder


@dataclass(frozen=True)
class SmallJudge(Judge):
    """The judge trained on this machine."""

    model: str = ""
    """Its folder; "" = the default of `sleuth judge train`."""

    def open(self) -> None:
        self._judge.open()

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        return self._judge.entailment(pairs)

    @cached_property
    def _judge(self) -> Judge:
        folder = Path(self.model).expanduser() if self.model else default_folder()
        if (folder / "config.json").is_file():
            return NLIJudge(str(folder))
        raise JudgeError(f"no trained judge in {folder}: run 'sleuth judge train PAIRS.jsonl -o {folder}'")


def default_folder() -> Path:
    """Folder of the trained judge unless another is named."""
    return cache_folder() / "small-judge"
