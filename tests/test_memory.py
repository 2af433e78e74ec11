"""Free main memory, from the files that Linux shows."""

from pathlib import Path

import pytest

from sleuth.memory import free_ram

GIB = 2**30


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


MACHINE = {"proc/meminfo": "MemTotal: 16777216 kB\nMemFree: 1 kB\nMemAvailable: 8388608 kB\n"}
V2 = "sys/fs/cgroup/memory"
V1 = "sys/fs/cgroup/memory/memory"


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, 8 * GIB),
        ({f"{V2}.max": "max\n", f"{V2}.current": "5\n"}, 8 * GIB),
        (
            {
                f"{V2}.max": f"{3 * GIB}\n",
                f"{V2}.current": f"{2 * GIB}\n",
                f"{V2}.stat": "anon 9\nactive_file 7\n",
            },
            GIB + 7,  # files that the group has read can be dropped
        ),
        ({f"{V2}.max": "100", f"{V2}.current": "200", f"{V2}.stat": "anon 9"}, 0),
        (
            {f"{V1}.limit_in_bytes": "50", f"{V1}.usage_in_bytes": "20", f"{V1}.stat": "inactive_file 4"},
            34,
        ),
    ],
)
def test_the_smaller_of_machine_and_control_group(tmp_path: Path, files: dict[str, str], free: int) -> None:
    assert free_ram(write(tmp_path, MACHINE | files)) == free


def test_without_linux_it_is_the_machine_s_memory(tmp_path: Path) -> None:
    assert free_ram(tmp_path) > 2**28
