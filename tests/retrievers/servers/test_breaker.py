"""The circuit breaker, with a clock set by hand."""

from sleuth.retrievers.servers.breaker import Breaker


def test_closed_open_half_open_closed():
    now = [100.0]
    breaker = Breaker(3, 10.0, lambda: now[0])
    for _ in range(2):
        breaker.failed()
    assert breaker.refusal_s() == 0
    breaker.succeeded()  # in a row: counting starts again
    for _ in range(3):
        assert breaker.refusal_s() == 0
        breaker.failed()
    assert breaker.refusal_s() == 10
    now[0] += 4
    assert breaker.refusal_s() == 6
    now[0] += 6
    assert breaker.refusal_s() == 0  # one may try …
    assert breaker.refusal_s() == 10  # … and only one
    breaker.failed()
    now[0] += 9
    assert breaker.refusal_s() == 1
    now[0] += 1
    assert breaker.refusal_s() == 0
    breaker.succeeded()
    assert breaker.refusal_s() == breaker.refusal_s() == 0
