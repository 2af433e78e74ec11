"""What the front answers itself is what the application would answer; all else it leaves, byte for byte."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.retrievers.base import Retriever
from sleuth.retrievers.bm25 import BM25, open_index
from sleuth.serving.front import Head, read_head
from sleuth.serving.limits import Limits
from sleuth.types import Hit, Passage
from support.connection import RADIUM, START, Connected, play, request


class Echo(Retriever):
    """Finds the query itself, and is nothing that computes in this process for all the server knows."""

    def search(self, queries: Any, k: int) -> list[list[Hit]]:
        return [[Hit(Passage("p", "", query), 1.0)] for query in queries]


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 5"],
        ["content-length:5", "Connection: Keep-Alive", "Accept: */*", "X-Any: \xe9"],
        ["Content-Type: text/plain", "CONTENT-LENGTH:  5  "],
    ],
)
def test_plain_heads(lines: list[str]):
    head = START + "".join(f"{line}\r\n" for line in lines) + "\r\n"
    assert read_head(head.encode("latin-1")) == Head(5, b"")


def test_a_head_with_a_token():
    head = f"{START}Authorization: Bearer s3cret \r\nContent-Length: 0\r\n\r\n"
    assert read_head(head.encode()) == Head(0, b"Bearer s3cret")


@pytest.mark.parametrize(
    "head",
    [
        "POST /retrieve HTTP/1.0\r\nContent-Length: 5\r\n\r\n",
        "GET /retrieve HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
        "POST /retrieve/ HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
        "POST /retrieve?a=b HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
        START + "\r\n",
        START + "Host: x\r\n\r\n",
        START + "Content-Length: \r\n\r\n",
        START + "Content-Length: +5\r\n\r\n",
        START + "Content-Length: -5\r\n\r\n",
        START + "Content-Length: 0x5\r\n\r\n",
        START + "Content-Length: 5 5\r\n\r\n",
        START + "Content-Length: 5, 5\r\n\r\n",
        START + "Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
        START + "Content-Length: 5\r\ncontent-length: 6\r\n\r\n",
        START + "Content-Length: 9999999999\r\n\r\n",
        START + "Content-Length : 5\r\n\r\n",
        START + " Content-Length: 5\r\n\r\n",
        START + "Content-Length: 5\r\n folded: yes\r\n\r\n",
        START + "Content-Length: 5\nHost: x\r\n\r\n",
        START + "Content-Length: 5\r\nHost: a\x00b\r\n\r\n",
        START + "Content-Length: 5\r\nHost: a\rb\r\n\r\n",
        START + "Content-Length: 5\r\n: x\r\n\r\n",
        START + "Content-Length: 5\r\nHost\r\n\r\n",
        START + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        START + "Content-Length: 5\r\nTransfer-Encoding: identity\r\n\r\n",
        START + "Content-Length: 5\r\nContent-Encoding: gzip\r\n\r\n",
        START + "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
        START + "Content-Length: 5\r\nUpgrade: h2c\r\n\r\n",
        START + "Content-Length: 5\r\nConnection: close\r\n\r\n",
        START + "Content-Length: 5\r\nConnection: keep-alive, close\r\n\r\n",
        START + "Content-Length: 5\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n",
        START + "Content-Length: 5\r\nAuthorization: a\r\nAuthorization: b\r\n\r\n",
    ],
)
def test_heads_that_are_left_to_the_parser(head: str):
    assert read_head(head.encode("latin-1")) is None


@given(st.binary(max_size=60))
def test_any_field_is_read_or_left(junk: bytes):
    head = read_head(START.encode() + b"Content-Length: 5\r\nX: " + junk + b"\r\n\r\n")
    assert head == Head(5, b"") or (head is None and re.search(rb"[^\t\x20-\x7e\x80-\xff]", junk))


def test_the_front_answers_as_the_application_does(index: Path):
    async def scene(connected: Connected) -> None:
        bodies = [
            {"queries": ["radium"], "topk": 2, "return_scores": True},
            {"queries": ["radium", "", "town", "radium"], "return_scores": False},
            {"query": "Moss"},
            {"queries": []},
        ]
        plain = [await connected.send(request(body)) for body in bodies]
        assert connected.front is not None
        unusual = [await connected.send(request(body, "Expect: nothing")) for body in bodies]
        assert connected.front is None
        assert plain == unusual
        assert json.loads(plain[0][2])["result"][0][0]["document"]["id"] == "curie"
        assert [plain[0][0], plain[0][1]["content-type"]] == [200, "application/json"]

    play(lambda: open_index(index), scene, Limits(cache_bytes=0))


def test_a_request_in_two_pieces_cut_anywhere(index: Path):
    async def scene(connected: Connected) -> None:
        _, _, whole = await connected.send(RADIUM)
        for cut in range(1, len(RADIUM)):
            status, _, body = await connected.send(RADIUM[:cut], RADIUM[cut:])
            assert (status, body) == (200, whole), cut
        assert connected.front is not None
        status, _, body = await connected.send(*(RADIUM[i : i + 7] for i in range(0, len(RADIUM), 7)))
        assert (status, body) == (200, whole)
        assert connected.front is None  # so many pieces are uvicorn's

    play(lambda: open_index(index), scene)


def test_a_request_whose_rest_is_late_is_left_and_answered(index: Path):
    async def scene(connected: Connected) -> None:
        connected.writer.write(RADIUM[:-5])
        while connected.front:
            await asyncio.sleep(0.05)
        assert (await connected.send(RADIUM[-5:]))[0] == 200

    play(lambda: open_index(index), scene)


def test_requests_sent_in_a_row_are_answered_in_their_order(index: Path):
    names = ["town 3", "radium", "copper"]

    async def scene(connected: Connected) -> None:
        connected.writer.write(b"".join(request({"query": name, "topk": 1}) for name in names))
        found = [json.loads((await connected.receive())[2])["result"][0][0]["id"] for _ in names]
        assert found == ["town-3", "curie", "7"]
        assert connected.front is None

    play(lambda: open_index(index), scene)


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        (request({"queries": ["a"], "topk": 0}), 422, "not 0"),
        (request({"queries": ["a"], "topk": -1}), 422, "not -1"),
        (request({"queries": ["a"], "topk": 10**9}), 422, "not 1000000000"),
        (request({"queries": ["a"], "topk": True}), 422, "not True"),
        (request({"queries": ["a"], "topk": "3"}), 422, "not '3'"),
        (request({"queries": ["a"] * 100_000}), 413, "100000 queries"),
        (request(b"queries=a", "Content-Type: application/x-www-form-urlencoded"), 400, "no JSON"),
        (request(b""), 400, "no JSON"),
        (request({}, start="POST /../index HTTP/1.1\r\n"), 404, "no such route"),
        (request({}, start="GET /retrieve HTTP/1.1\r\n"), 405, "GET is not answered here"),
        (request({}, "X: " + "y" * 5000), 422, "queries: missing"),
    ],
)
def test_what_is_wrong_is_told_by_the_application(index: Path, sent: bytes, status: int, words: str):
    async def scene(connected: Connected) -> None:
        assert (await connected.send(RADIUM))[0] == 200
        answer = await connected.send(sent)
        assert answer[0] == status
        assert words in json.loads(answer[2])["error"]
        assert connected.front is None
        assert (await connected.send(RADIUM))[0] == 200  # and the connection goes on
        assert connected.service.metrics.total("queries_total") == 2  # nothing was counted twice

    play(lambda: open_index(index), scene)


@pytest.mark.parametrize(
    "field", ["Content-Type: text/plain", "Content-Type: image/png", "Content-Type: application/json"]
)
def test_json_is_taken_by_whatever_name(index: Path, field: str):
    # curl -d calls it a form; Search-R1's clients send no type at all in some versions.
    async def scene(connected: Connected) -> None:
        assert (await connected.send(request({"query": "radium"}, field)))[0] == 200
        assert connected.front is not None

    play(lambda: open_index(index), scene)


def test_a_body_too_long_for_the_front(index: Path):
    async def scene(connected: Connected) -> None:
        answer = await connected.send(request({"queries": ["radium " * 20_000], "topk": 1}))
        assert answer[0] == 200
        assert connected.front is None

    play(lambda: open_index(index), scene)


def test_no_http_at_all_is_400(index: Path):
    async def scene(connected: Connected) -> None:
        connected.writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        assert (await connected.reader.readline()).startswith(b"HTTP/1.1 400")

    play(lambda: open_index(index), scene)


def test_a_wrong_token_is_401_and_the_right_one_needs_no_application(index: Path):
    async def scene(connected: Connected) -> None:
        body = {"query": "radium"}
        assert (await connected.send(request(body, "Authorization: bearer s3cret")))[0] == 200
        assert connected.front is not None
        for lines in ([], ["Authorization: Bearer s3cre"], ["Authorization: Basic s3cret"]):
            assert (await connected.send(request(body, *lines)))[0] == 401

    play(lambda: open_index(index), scene, Limits(token="s3cret"))


def test_a_retriever_that_may_wait_is_asked_through_the_queue():
    async def scene(connected: Connected) -> None:
        status, _, body = await connected.send(RADIUM)
        assert (status, json.loads(body)["result"][0][0]["document"]["text"]) == (200, "radium")
        assert connected.front is None

    play(Echo, scene)


def test_faults_are_told_by_the_application(index: Path):
    class Faulty(BM25):
        def search(self, queries: Any, k: int) -> list[list[Hit]]:
            if queries == ["break"]:
                raise ZeroDivisionError("secret detail")
            return [] if queries == ["radium"] else super().search(queries, k)

    async def scene(connected: Connected) -> None:
        assert (await connected.send(request({"query": "town"})))[0] == 200
        status, fields, body = await connected.send(RADIUM)
        assert (status, fields["retry-after"]) == (503, "1")
        assert json.loads(body) == {"error": "the retriever gave 0 lists for 1 queries"}

    async def break_it(connected: Connected) -> None:
        status, _, body = await connected.send(request({"query": "break"}))
        assert (status, json.loads(body)) == (500, {"error": "internal error; the server's log tells more"})

    play(lambda: Faulty(path=str(index)), scene)
    play(lambda: Faulty(path=str(index)), break_it)


def test_a_request_half_sent_at_the_end_is_answered(index: Path):
    async def scene(connected: Connected) -> None:
        connected.writer.write(RADIUM[:-5])
        await asyncio.sleep(0.02)
        assert connected.front is not None
        connected.front.shutdown()
        assert (await connected.send(RADIUM[-5:]))[0] == 200
        assert await connected.reader.read() == b""  # then it is over

    play(lambda: open_index(index), scene)


def test_a_request_that_is_being_answered_at_the_end_gets_its_answer(index: Path):
    async def scene(connected: Connected) -> None:
        assert connected.front is not None
        connected.front.data_received(RADIUM)
        connected.front.shutdown()
        assert (await connected.receive())[0] == 200
        assert await connected.reader.read() == b""

    play(lambda: open_index(index), scene)


def test_a_second_request_before_the_first_is_answered_comes_after_it(index: Path):
    async def scene(connected: Connected) -> None:
        front = connected.front
        assert front is not None
        for name in ("town 3", "radium", "copper"):
            front.data_received(request({"query": name, "topk": 1}))
        found = [json.loads((await connected.receive())[2])["result"][0][0]["id"] for _ in range(3)]
        assert found == ["town-3", "curie", "7"]
        assert connected.front is None
        assert (await connected.send(RADIUM))[0] == 200  # it is read again

    play(lambda: open_index(index), scene)


def test_a_client_that_leaves_before_its_answer_is_forgotten(index: Path):
    async def scene(connected: Connected) -> None:
        assert connected.front is not None
        connected.front.data_received(RADIUM)
        connected.writer.transport.abort()
        while connected.state.connections:
            await asyncio.sleep(0.01)

    play(lambda: open_index(index), scene)


def test_the_end_closes_a_connection_that_asks_nothing(index: Path):
    async def scene(connected: Connected) -> None:
        await connected.send(RADIUM)
        assert connected.front is not None
        connected.front.shutdown()
        assert await connected.reader.read() == b""

    play(lambda: open_index(index), scene)


def test_a_silent_connection_is_closed(index: Path):
    async def scene(connected: Connected) -> None:
        for _ in range(3):
            await asyncio.sleep(0.2)
            assert (await connected.send(RADIUM))[0] == 200  # each one starts the time anew
        assert await asyncio.wait_for(connected.reader.read(), 10) == b""
        assert not connected.state.connections

    play(lambda: open_index(index), scene, idle_s=0.4)


def test_who_does_not_read_is_not_read(index: Path):
    async def scene(connected: Connected) -> None:
        front = connected.front
        assert front is not None
        front.pause_writing()
        connected.writer.write(RADIUM)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connected.reader.read(1), 0.2)
        front.resume_writing()
        assert (await connected.receive())[0] == 200

    play(lambda: open_index(index), scene)
