"""What is counted, and that several workers' numbers are one server's."""

from __future__ import annotations

import os

import pytest

from sleuth.serving.metrics import Metrics, Table


def values(metrics: Metrics) -> dict[str, float]:
    lines = metrics.render().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


def test_every_worker_shows_the_sums():
    table = Table(3)
    workers = [Metrics(table, i) for i in range(3)]
    for i, worker in enumerate(workers):
        worker.add("queries_total", 10**i)
        worker.set("waiting_queries", i)
        worker.answered("/retrieve", 200, 0.002)
    workers[2].answered("/retrieve", 200, 30.0)
    for worker in workers:
        shown = values(worker)
        assert shown["sleuth_queries_total"] == 111
        assert shown["sleuth_waiting_queries"] == 3
        assert shown['sleuth_requests_total{path="/retrieve",status="200"}'] == 4
        assert shown['sleuth_retrieve_seconds_bucket{le="0.001"}'] == 0
        assert shown['sleuth_retrieve_seconds_bucket{le="0.0025"}'] == 3
        assert shown['sleuth_retrieve_seconds_bucket{le="10.0"}'] == 3
        assert shown['sleuth_retrieve_seconds_bucket{le="+Inf"}'] == 4
        assert shown["sleuth_retrieve_seconds_count"] == 4
        assert shown["sleuth_retrieve_seconds_sum"] == pytest.approx(30.006)


def test_ready_when_all_are():
    table = Table(2)
    one, other = Metrics(table, 0), Metrics(table, 1)
    one.set("ready", 1)
    assert (one.all_ready, other.all_ready, values(other)["sleuth_ready"]) == (False, False, 0)
    other.set("ready", 1)
    assert (one.all_ready, other.all_ready, values(one)["sleuth_ready"]) == (True, True, 1)


def test_a_table_is_shared_with_processes_that_part_later():
    table = Table(2)
    child = os.fork()
    if not child:
        Metrics(table, 1).add("batches_total", 5)
        os._exit(0)
    os.waitpid(child, 0)
    assert Metrics(table, 0).total("batches_total") == 5


def test_statuses_nobody_thought_of_and_failures_are_counted_without_latency():
    metrics = Metrics()
    metrics.answered("/retrieve", 418, 1.0)
    metrics.answered("other", 404, 1.0)
    shown = values(metrics)
    assert shown['sleuth_requests_total{path="/retrieve",status="other"}'] == 1
    assert shown['sleuth_requests_total{path="other",status="404"}'] == 1
    assert shown["sleuth_retrieve_seconds_count"] == 0


def test_what_is_not_counted_is_no_counter():
    with pytest.raises(KeyError):
        Metrics().add("queries")
