"""The circuit breaker, with a clock set by hand."""

from sleuth.retrievers.servers.breaker import Breaker


def test_closed_open_half_open_closed():
    now = [100.0]
    breaker = Breaker(3, 10.0, lambda: now[0])
    for _ in range(2):
        breaker.failed(breaker.now())
    assert breaker.refusal_s() == 0
    breaker.succeeded()  # in a row: counting starts again
    for _ in range(3):
        assert breaker.refusal_s() == 0
        breaker.failed(breaker.now())
    assert breaker.refusal_s() == 10
    now[0] += 4
    assert breaker.refusal_s() == 6
    now[0] += 6
    assert breaker.refusal_s() == 0  # one may try …
    assert breaker.refusal_s() == 10  # … and only one
    breaker.failed(breaker.now())
    now[0] += 9
    assert breaker.refusal_s() == 1
    now[0] += 1
    assert breaker.refusal_s() == 0
    breaker.succeeded()
    assert breaker.refusal_s() == breaker.refusal_s() == 0


def test_requests_that_failed_together_count_once():
    now = [100.0]
    breaker = Breaker(2, 10.0, lambda: now[0])
    now[0] += 1
    for _ in range(16):  # all asked at 100, before any of them had failed
        breaker.failed(100.0)
    assert breaker.refusal_s() == 0
    asked_at = now[0] = 102.0
    now[0] += 1
    for _ in range(16):
        breaker.failed(asked_at)
    assert breaker.refusal_s() == 10
    now[0] += 6
    breaker.failed(100.5)  # one that took long tells nothing new, and does not make the rest longer
    assert breaker.refusal_s() == 4
