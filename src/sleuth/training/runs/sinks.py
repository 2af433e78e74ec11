"""Optional trackers that receive the rows of metrics.jsonl: TensorBoard, Weights & Biases, Trackio.

Each library is imported when its sink opens, and its absence is one error naming the extra.
"""

import hashlib
import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sleuth.errors import TrainingError
from sleuth.registry import resolve
from sleuth.training import SINKS


class Sink(ABC):
    """Receives every row of metrics."""

    @abstractmethod
    def open(self, folder: Path, settings: Mapping[str, Any]) -> None:
        """Start or continue the run in `folder`; `settings` are its resolved recipe."""

    @abstractmethod
    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """Receive one row of finite numbers."""

    @abstractmethod
    def close(self) -> None:
        """Flush and end."""


def open_sink(name: str) -> Sink:
    """The sink registered as `name`; ConfigError with the nearest right name. RunLog starts it."""
    sink: Sink = resolve("sinks", SINKS, name)()
    return sink


class TensorBoardSink(Sink):
    """Event files under FOLDER/tensorboard."""

    def open(self, folder: Path, settings: Mapping[str, Any]) -> None:
        library = _library("torch.utils.tensorboard", "tensorboard")
        self._writer = library.SummaryWriter(str(folder / "tensorboard"))
        self._writer.add_text("settings", str(dict(settings)))

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class TrackioSink(Sink):
    """Trackio, local first."""

    module = "trackio"

    def open(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self._library = _library(self.module, self.module)
        path = str(folder.resolve()).encode("utf-8", "surrogateescape")
        name = f"{folder.resolve().name}-{hashlib.blake2b(path, digest_size=4).hexdigest()}"
        self._library.init(
            project="sleuth", name=name, config=dict(settings), resume="allow", **self._options(folder, name)
        )

    def _options(self, folder: Path, name: str) -> dict[str, Any]:
        return {}

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """Log one row; the step is a figure of its own, since both phases count from 1."""
        self._library.log({"progress/step": step, **figures})

    def close(self) -> None:
        self._library.finish()


class WandbSink(TrackioSink):
    """Weights & Biases, whose interface trackio copies; files in FOLDER/wandb, and its environment variables apply."""

    module = "wandb"

    def _options(self, folder: Path, name: str) -> dict[str, Any]:
        return {"dir": str(folder), "id": hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}


def _library(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        hint = f"pip install '.[{extra}]' in the Sleuth checkout"
        raise TrainingError(f"{extra} is not installed: {hint}") from error
