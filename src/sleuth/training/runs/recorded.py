"""The recipe of a run folder, which a run that is refused there leaves as it was. Torch-free at import."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sleuth.errors import ConfigError, OtherRunError
from sleuth.training.parallel import ranks


@contextmanager
def recorded(folder: Path, record: Callable[[], None], close: Callable[[], None]) -> Iterator[None]:
    """`folder` with what `record` writes, by the first rank; its earlier recipe is put back for another run's."""
    before = {path: path.read_bytes() for path in _recipe_files(folder)}
    try:
        ranks.first(record)
        yield
    except (OtherRunError, ConfigError):
        if before and ranks.is_first():
            for path in _recipe_files(folder):
                path.unlink()
            for path, content in before.items():
                path.write_bytes(content)
        raise
    finally:
        close()


def _recipe_files(folder: Path) -> list[Path]:
    """recipe.json, and a user's own recipe with the files that it imports."""
    return [path for path in folder.glob("*") if path.name == "recipe.json" or path.suffix == ".py"]
