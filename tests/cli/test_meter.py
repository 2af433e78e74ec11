"""Progress in a log: rate and time left."""

import pytest

from sleuth.cli import meter
from sleuth.cli.meter import Meter

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(meter.time, "monotonic", lambda: now[0])
    return now


def lines(capsys: Capture) -> list[str]:
    return [line.removeprefix("sleuth: ") for line in capsys.readouterr().err.splitlines() if line.strip()]


def test_a_line_every_half_minute_with_the_rate_since_the_last(capsys: Capture, clock: list[float]):
    with Meter("passages", 10_000) as shown:
        for seconds, count in ((10, 100), (30, 3000), (59, 5900), (60, 9000), (90, 12_000)):
            clock[0] = seconds
            shown.show(count)
    assert lines(capsys) == [
        "3,000 passages, 100 a second, about 1:10 left",
        "9,000 passages, 200 a second, about 0:05 left",
        "12,000 passages, 100 a second",
    ]


def test_without_a_total_or_not_at_all(capsys: Capture, clock: list[float]):
    with Meter("vectors") as shown, Meter("vectors", 5, silent=True) as silent:
        clock[0] = 30
        shown.show(300)
        silent.show(300)
    assert lines(capsys) == ["300 vectors, 10 a second"]
