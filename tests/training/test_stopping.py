"""Signals only ask; the budget ends before a step that would overrun it."""

import os
import signal
import threading

import pytest

from sleuth.training.runs.stopping import Budget, asked_to_stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_asks_and_the_second_acts_as_before(number: signal.Signals) -> None:
    received: list[int] = []
    before = signal.signal(number, lambda n, _: received.append(n))
    try:
        with asked_to_stop() as asked:
            assert not asked()
            os.kill(os.getpid(), number)
            assert asked()
            assert received == []
            os.kill(os.getpid(), number)
            assert received == [number]
    finally:
        signal.signal(number, before)


def test_handlers_are_put_back_and_left_alone_where_the_caller_watches() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with asked_to_stop():
        assert signal.getsignal(signal.SIGTERM) != before[1]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    with asked_to_stop(lambda: True) as asked:
        assert signal.getsignal(signal.SIGTERM) == before[1]
        assert asked()


def test_another_thread_than_the_main_one_can_train() -> None:
    found: list[bool] = []

    def work() -> None:
        with asked_to_stop() as asked:
            found.append(asked())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]


def test_a_budget_ends_before_a_step_as_long_as_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("sleuth.training.runs.stopping.time.monotonic", lambda: now)
    budget = Budget(10.0)
    assert not budget.is_spent()
    now = 104.0
    budget.lap()
    now = 105.0
    budget.lap()
    assert not budget.is_spent()  # 5 + 4 ≤ 10
    now = 106.5
    assert budget.is_spent()  # 6.5 + 4 > 10
    assert budget.elapsed_s == 6.5
    assert not Budget(None).is_spent()


def test_work_done_once_before_a_step_forecasts_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("sleuth.training.runs.stopping.time.monotonic", lambda: now)
    budget = Budget(10.0)
    now = 5.0
    budget.restart_lap()
    now = 7.0
    budget.lap()
    assert not budget.is_spent()  # 7 + 2 ≤ 10, where the first step with its measurement took 7
