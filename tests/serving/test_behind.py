"""What uvicorn is kept from: heads without end or limit, protocols it does not speak, refusals in words of its own."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from sleuth.retrievers.bm25 import open_index
from sleuth.serving.behind import LONGEST_HEAD
from sleuth.serving.limits import Limits
from support.connection import RADIUM, Connected, play, request

QUICK = Limits(body_timeout_s=0.5)


async def refused(connected: Connected) -> tuple[int, str]:
    """Status and words of a refusal after which the connection ends."""
    status, fields, body = await connected.receive()
    assert (fields["content-type"], fields["connection"]) == ("application/json", "close")
    assert await asyncio.wait_for(connected.reader.read(), 10) == b""
    return status, json.loads(body)["error"]


@pytest.mark.parametrize("begun", [b"P", b"GET /health HTTP/1.1\r\nHost", RADIUM[:40]])
@pytest.mark.parametrize("after_another", [False, True])
def test_a_head_that_does_not_end_is_given_up(index: Path, begun: bytes, after_another: bool):
    async def scene(connected: Connected) -> None:
        if after_another:
            assert (await connected.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"))[0] == 200
        connected.writer.write(begun)
        assert await refused(connected) == (408, "the request did not arrive within 0.5 s")
        assert connected.service.metrics.total(("other", "408")) == 1

    play(lambda: open_index(index), scene, QUICK)


def test_a_head_that_comes_in_drops_has_no_more_time(index: Path):
    async def drip(connected: Connected) -> None:
        connected.writer.write(b"GET / HTTP/1.1\r\n")
        while True:
            connected.writer.write(b"X-A: b\r\n")
            await asyncio.sleep(0.05)

    async def scene(connected: Connected) -> None:
        dripping = asyncio.create_task(drip(connected))
        assert (await connected.receive())[0] == 408
        dripping.cancel()

    play(lambda: open_index(index), scene, QUICK)


def test_a_line_end_alone_does_not_keep_a_connection(index: Path):
    async def scene(connected: Connected) -> None:
        assert (await connected.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"))[0] == 200
        connected.writer.write(b"\r\n")
        assert await asyncio.wait_for(connected.reader.read(), 10) == b""

    play(lambda: open_index(index), scene, QUICK)


def test_the_body_of_a_request_that_was_refused_has_an_end(index: Path):
    async def scene(connected: Connected) -> None:
        head = b"POST /elsewhere HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
        assert (await connected.send(head))[0] == 404
        assert await asyncio.wait_for(connected.reader.read(), 10) == b""

    play(lambda: open_index(index), scene, QUICK)


def test_an_endless_head_is_too_long(index: Path):
    async def scene(connected: Connected) -> None:
        connected.writer.write(b"GET /health HTTP/1.1\r\n")
        sent = 0
        while not connected.service.metrics.total(("other", "431")):
            assert sent < 4 * LONGEST_HEAD
            connected.writer.write(b"X: " + b"y" * 5000 + b"\r\n")
            sent += 5005
            await asyncio.sleep(0.02)
        assert await refused(connected) == (
            431,
            f"the head of a request is at most {LONGEST_HEAD} bytes long",
        )

    play(lambda: open_index(index), scene)


def test_long_requests_one_after_the_other_are_not_taken_for_a_head(index: Path):
    long = request({"queries": ["radium", "x " * LONGEST_HEAD], "topk": 1})

    async def scene(connected: Connected) -> None:
        for _ in range(3):
            assert (await connected.send(long))[0] == 200

    play(lambda: open_index(index), scene)


def test_a_client_may_rest_longer_than_a_request_may_take(index: Path):
    async def scene(connected: Connected) -> None:
        for _ in range(2):
            assert (await connected.send(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"))[0] == 200
            await asyncio.sleep(0.8)

    play(lambda: open_index(index), scene, QUICK)


def test_what_is_no_request_is_refused_and_counted(index: Path):
    async def scene(connected: Connected) -> None:
        connected.writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        assert await refused(connected) == (400, "Invalid HTTP request received.")
        assert connected.service.metrics.total(("other", "400")) == 1

    play(lambda: open_index(index), scene)


@pytest.mark.parametrize("pieces", [1, 2])
def test_an_offer_of_another_protocol_is_passed_over(index: Path, pieces: int):
    offer = request(
        {"queries": ["radium"], "topk": 1},
        "Connection: Upgrade, HTTP2-Settings",
        "Upgrade: h2c",
        "HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA",
    )
    cut = offer.index(b"\r\n\r\n") + 4 if pieces == 2 else len(offer)

    async def scene(connected: Connected) -> None:
        for _ in range(2):
            status, _, body = await connected.send(*filter(None, (offer[:cut], offer[cut:])))
            assert (status, json.loads(body)["result"][0][0]["id"]) == (200, "curie")

    play(lambda: open_index(index), scene)
