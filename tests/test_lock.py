"""FolderLock, and the temporary folders of killed processes."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from sleuth.errors import BusyError
from sleuth.lock import FolderLock, remove_left

KILLED = """
import os, sys
from pathlib import Path
from sleuth.lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
os._exit(9)
"""


def test_one_process_writes_a_folder(tmp_path: Path):
    lock = FolderLock(tmp_path)
    with pytest.raises(BusyError, match="is being written by process"):
        FolderLock(tmp_path)
    lock.release()
    FolderLock(tmp_path).release()


def test_only_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folders = {name: tmp_path / f"mine-{name}" for name in ("killed", "held", "released", "new")}
    for folder in (*folders.values(), other := tmp_path / "other-killed"):
        folder.mkdir()
    for folder in (folders["killed"], other):
        subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False)
    held = FolderLock(folders["held"])
    FolderLock(folders["released"]).release()
    remove_left("mine-")
    assert sorted(folder.name for folder in tmp_path.iterdir()) == [
        "mine-held",
        "mine-new",
        "mine-released",
        "other-killed",
    ]
    held.release()
