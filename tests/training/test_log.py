"""metrics.jsonl holds each step once, the folder has one writer, and sinks get finite numbers."""

import math
import os
import subprocess
import sys
import types
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sleuth.errors import BusyError, ConfigError, TrainingError
from sleuth.training import SINKS
from sleuth.training.runs.log import RunLog
from sleuth.training.runs.sinks import Sink, open_sink
from support.toy import quiet, rows, shown


def test_a_resumed_phase_cuts_only_its_own_later_rows(tmp_path: Path) -> None:
    with RunLog(tmp_path, console=quiet()) as log:
        for phase in ("warm_start", "train"):
            log.begin(phase, 5)
            for step in (1, 2, 3):
                log.write(step, {"update/loss": float(step)})
    with RunLog(tmp_path, console=quiet()) as log:
        log.begin("train", 5, done=1)
        log.write(2, {"update/loss": 20.0})
    steps = [(row["phase"], row["step"], row["update/loss"]) for row in rows(tmp_path)]
    assert steps == [("warm_start", i, float(i)) for i in (1, 2, 3)] + [("train", 1, 1.0), ("train", 2, 20.0)]


def test_a_line_cut_short_by_a_kill_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(b'{"phase":"train","step":1}\n{"phase":"train","st')
    with RunLog(tmp_path, console=quiet()) as log:
        log.begin("train", 5, done=3)
        log.write(4, {})
    assert [row["step"] for row in rows(tmp_path)] == [1, 4]


def test_a_second_writer_is_refused_with_the_id_of_the_first(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib\n"
        "from sleuth.training.runs.log import RunLog\n"
        "with RunLog(pathlib.Path(sys.argv[1])):\n"
        "    print('open', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout.readline() == "open\n"
    with pytest.raises(BusyError, match=f"process {other.pid}"):
        RunLog(tmp_path, console=quiet())
    other.kill()
    other.communicate()
    console = quiet()
    with RunLog(tmp_path, console=console) as log:
        assert (log.folder / ".lock").read_text() == str(os.getpid())
        assert f"process {other.pid} ended without closing" in shown(console)
    console = quiet()
    with RunLog(tmp_path, console=console):
        assert console.file.getvalue() == ""  # type: ignore[attr-defined]


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "run" / "metrics.jsonl").mkdir(parents=True)
    for folder in (tmp_path / "file" / "run", tmp_path / "run"):
        with pytest.raises(TrainingError, match="cannot be written"):
            RunLog(folder, console=quiet())


class Kept(Sink):
    """Keeps everything it is given."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def open(self, folder: Path, settings: Mapping[str, Any]) -> None:
        self.events.append(("open", folder, settings))

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        self.events.append((step, dict(figures)))

    def close(self) -> None:
        self.events.append("close")


def test_sinks_get_finite_figures_with_the_phase_in_the_name(tmp_path: Path) -> None:
    sink = Kept()
    with RunLog(tmp_path, sinks=[sink], settings={"name": "x"}, console=quiet()) as log:
        log.begin("warm_start", 1)
        log.write(1, {"update/loss": 1.0})
        log.begin("train", 1)
        log.write(1, {"update/loss": 2.0, "update/kl": float("nan")})
        assert rows(tmp_path)[1] == {"phase": "train", "step": 1, "update/loss": 2.0, "update/kl": None}
    assert sink.events == [
        ("open", tmp_path, {"name": "x"}),
        (1, {"warm_start/update/loss": 1.0}),
        (1, {"update/loss": 2.0}),
        "close",
    ]


def test_an_infinity_stays_a_spike(tmp_path: Path) -> None:
    with RunLog(tmp_path, console=quiet()) as log:
        log.begin("train", 1)
        log.write(1, {"update/kl_k3": math.inf, "update/kl": -math.inf})
        assert (rows(tmp_path)[0]["update/kl_k3"], rows(tmp_path)[0]["update/kl"]) == (1e300, -1e300)


@pytest.mark.parametrize("name", sorted(SINKS))
def test_a_missing_library_names_its_extra_and_frees_the_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("wandb", "trackio", "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(TrainingError, match=rf"pip install '\.\[{name}\]'"):
        RunLog(tmp_path, sinks=[open_sink(name)], console=quiet())
    RunLog(tmp_path, console=quiet()).close()


def test_an_unknown_sink_is_one_error() -> None:
    with pytest.raises(ConfigError, match="did you mean 'wandb'"):
        open_sink("wandbb")


def test_plain_lines_off_a_terminal_and_brackets_are_text(tmp_path: Path) -> None:
    console = quiet()
    with RunLog(tmp_path, console=console) as log:
        log.begin("train", 2)
        log.activity("rolling out 3/8")
        log.write(1, {"reward/total": 0.25, "rollouts/valid_format": 1.0, "other/figure": 3.0})
        log.say("question [bold]x[/nothing]")
    first, second = shown(console).splitlines()
    assert first.startswith("train 1/2 · reward 0.25 · valid 1 · ")
    assert second == "question [bold]x[/nothing]"


def test_the_time_left_is_that_of_the_steps_made_here(tmp_path: Path) -> None:
    console = quiet()
    with RunLog(tmp_path, console=console) as log:
        log.begin("train", 12, done=8)
        log._terminal._began -= 100.0
        log.write(9, {"time/step_s": 40.0})  # the other 60 s were before it
        log._terminal._began -= 20.0
        log._terminal._first -= 20.0
        log.write(10, {"time/step_s": 10.0})  # with a save, two steps took 60 s; two are to come
    first, second = shown(console).splitlines()[-2:]
    assert first.endswith("· 1:40, 2:00 left")
    assert second.endswith("· 2:00, 1:00 left")


def test_a_terminal_shows_a_bar_with_the_activity(tmp_path: Path) -> None:
    console = Console(file=StringIO(), force_terminal=True, width=120)
    with RunLog(tmp_path, console=console) as log:
        log.begin("train", 2)
        log.activity("rolling out 3/8")
    assert "rolling out 3/8" in shown(console)


@pytest.mark.parametrize("name", ["trackio", "wandb"])
def test_runs_with_one_name_in_two_places_stay_apart(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[dict[str, Any]] = []
    logged: list[dict[str, float]] = []
    library = types.ModuleType(name)
    vars(library).update(
        init=lambda **options: started.append(options), log=logged.append, finish=lambda: None
    )
    monkeypatch.setitem(sys.modules, name, library)
    for place in ("a", "b", "a"):
        with RunLog(tmp_path / place / "demo", sinks=[open_sink(name)], console=quiet()) as log:
            log.begin("train", 1)
            log.write(1, {"update/loss": 2.0})
    assert started[0] == started[2]
    assert started[0]["name"] != started[1]["name"]
    assert started[0]["name"].startswith("demo-")
    assert logged == [{"progress/step": 1, "update/loss": 2.0}] * 3
