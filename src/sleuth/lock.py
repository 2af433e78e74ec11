"""FolderLock: one writer per folder of results.

The kernel drops the lock when the process ends. So a killed run never blocks its own resume,
and a reused process id never looks like a live owner.
"""

import fcntl
import os
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir

from sleuth.errors import BusyError


class FolderLock:
    """Lock that is held from construction to `release` or to the end of the process."""

    def __init__(self, folder: Path) -> None:
        """Raises BusyError naming the owner's process id if another process writes here."""
        self.stale = ""
        """Process id of an owner that ended without releasing; "" if there was none."""
        path = folder / ".lock"
        self._file = path.open("a+", encoding="ascii", errors="replace")
        self._file.seek(0)
        owner = self._file.read(32).strip()
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise BusyError(
                f"{folder} is being written by process {owner or '?'}; wait for it or choose another folder"
            ) from error
        self.stale = owner
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    @staticmethod
    def is_held(folder: Path) -> bool:
        """Whether a process is writing the folder."""
        try:
            with (folder / ".lock").open("rb") as file:
                # A released lock is empty: it is not probed, so that nobody is refused meanwhile.
                if file.read(1):
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    def release(self) -> None:
        """Let others write; harmless if released already."""
        if not self._file.closed:
            self._file.truncate(0)
            self._file.close()


def remove_left(prefix: str) -> None:
    """Remove the temporary folders with this prefix whose owners were killed; each holds its owner's FolderLock."""
    for folder in Path(gettempdir()).glob(f"{prefix}*"):
        # A new folder has no lock yet, a released lock is empty, and other users' folders cannot be read.
        with suppress(OSError):
            if (folder / ".lock").stat().st_size and not FolderLock.is_held(folder):
                shutil.rmtree(folder)
