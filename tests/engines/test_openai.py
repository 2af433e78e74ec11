"""The engine against a small server on 127.0.0.1 that answers as vLLM, transformers serve and OpenAI do."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines import open_engine
from sleuth.engines.base import Message, Request, Sampling
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.openai import OpenAIEngine
from sleuth.engines.transformers import TransformersEngine
from sleuth.errors import ConfigError, EngineError

Answer = tuple[int, Any] | tuple[int, Any, dict[str, str]]
CHAT = (Message("user", "q"),)


class Endpoint:
    """A server whose answers are a function of (path, body); keeps all it was sent."""

    def __init__(self, answer: Callable[[str, dict[str, Any]], Answer]) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self.lock = threading.Lock()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with endpoint.lock:
                    endpoint.seen.append((self.path, body))
                    endpoint.headers.append(dict(self.headers))
                self.reply(answer(self.path, body))

            def do_GET(self) -> None:
                self.reply(answer(self.path, {}))

            def reply(self, answer: Answer) -> None:
                status, payload, *rest = answer
                data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
                headers = {"Content-Length": str(len(data))} | (rest[0] if rest else {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)
                if int(headers["Content-Length"]) > len(data):
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def serve() -> Iterator[Callable[..., Endpoint]]:
    started: list[Endpoint] = []

    def start(answer: Callable[[str, dict[str, Any]], Answer]) -> Endpoint:
        started.append(Endpoint(answer))
        return started[-1]

    yield start
    for endpoint in started:
        endpoint.server.shutdown()
        endpoint.server.server_close()


def connect(endpoint: Endpoint, **options: Any) -> OpenAIEngine:
    engine = OpenAIEngine(endpoint.url, "m", **{"context_length": 1000, "timeout_s": 5.0} | options)
    engine._sleep = lambda _: None
    return engine


def text_reply(text: str, finish: str = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": text, "finish_reason": finish} | more]}


def chat_reply(text: str | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish} | more]}


@pytest.fixture
def tokenizer(hf_tokenizer: Any) -> HFTokenizer:
    return HFTokenizer(hf_tokenizer)


def test_token_ids_go_out_and_come_back(serve: Any, tokenizer: HFTokenizer) -> None:
    ids = [*tokenizer.encode("Paris"), 2]
    logprobs = {"token_logprobs": [-0.5] * len(ids)}
    endpoint = serve(lambda path, body: (200, text_reply("Paris", token_ids=ids, logprobs=logprobs)))
    engine = connect(endpoint, tokenizer=tokenizer)
    (done,) = engine.generate([Request([5, 6], seed=2**40 + 3)], Sampling(7, 1.0, 0.9, ("</a>",)))
    assert (list(done.tokens), done.text, done.stop) == (ids, "Paris", "eos")
    assert done.logprobs == (-0.5,) * len(ids)
    assert done.ends[-1] == len("Paris")
    path, body = endpoint.seen[0]
    assert path == "/v1/completions"
    assert engine.api == "tokens"
    expected = {
        "prompt": [5, 6],
        "max_tokens": 7,
        "temperature": 1.0,
        "top_p": 0.9,
        "seed": 3,
        "stop": ["</a>"],
    }
    assert expected.items() <= body.items()
    assert body["include_stop_str_in_output"]
    # Nothing of a generation config may come between the policy and its samples.
    assert (body["top_k"], body["repetition_penalty"]) == (-1, 1.0)


@pytest.mark.parametrize(("temperature", "kept"), [(0.0, True), (1.0, True), (0.7, False)])
def test_logprobs_only_where_they_are_those_of_the_sampling_temperature(
    serve: Any, tokenizer: HFTokenizer, temperature: float, kept: bool
) -> None:
    reply = text_reply("", "length", token_ids=[9, 8], logprobs={"token_logprobs": [-1.0, -2.0]})
    engine = connect(serve(lambda path, body: (200, reply)), tokenizer=tokenizer)
    (done,) = engine.generate([Request([5])], Sampling(2, temperature))
    assert done.logprobs == ((-1.0, -2.0) if kept else ())
    assert (done.tokens, done.stop) == ((9, 8), "length")


def transformers_serve(path: str, body: dict[str, Any]) -> Answer:
    """Refuses unknown fields and token prompts, keeps stop strings (recorded from transformers 5.23)."""
    unknown = set(body) - {
        "model",
        "prompt",
        "messages",
        "max_tokens",
        "temperature",
        "top_p",
        "seed",
        "stop",
    }
    if unknown:
        return 422, {"detail": f"Unexpected fields in the request: {unknown}"}
    if path == "/v1/completions" and not isinstance(body["prompt"], str):
        return 400, {"detail": "prompt must be a string."}
    return 200, text_reply("<answer>Paris</answer>")


def test_server_that_takes_only_text_and_known_fields(serve: Any, tokenizer: HFTokenizer) -> None:
    endpoint = serve(transformers_serve)
    engine = connect(endpoint, tokenizer=tokenizer)
    prompt = tokenizer.chat([Message("user", "say <|im_end|>")])
    requests = [Request(prompt)] * 3
    found = engine.generate(requests, Sampling(stop=("</answer>",)))
    assert {c.stop for c in found} == {"stop"}
    assert list(found[0].tokens) == tokenizer.encode("<answer>Paris</answer>")
    assert found[0].logprobs == ()
    # Two forms were refused once, by the first request alone.
    assert len(endpoint.seen) == 2 + 3
    assert endpoint.seen[-1][1]["prompt"] == (
        "<|im_start|>user\nsay ‹|im_end|><|im_end|>\n<|im_start|>assistant\n"
    )


def chat_only(path: str, body: dict[str, Any]) -> Answer:
    if path != "/v1/chat/completions":
        return 404, {"error": {"message": "no such route"}}
    return 200, chat_reply("<search>x")


def test_chat_is_the_last_resort_and_the_stripped_stop_string_comes_back(
    serve: Any, tokenizer: HFTokenizer
) -> None:
    endpoint = serve(chat_only)
    engine = connect(endpoint, tokenizer=tokenizer)
    (done,) = engine.generate([Request([5], messages=CHAT)], Sampling(stop=("</answer>", "</search>")))
    assert (done.text, done.stop) == ("<search>x</search>", "stop")
    assert endpoint.seen[-1][1]["messages"] == [{"role": "user", "content": "q"}]
    with pytest.raises(EngineError, match="only chat turns"):
        engine.generate([Request([5])], Sampling())


def test_without_a_tokenizer_chat_in_bytes(serve: Any) -> None:
    endpoint = serve(chat_only)
    engine = connect(endpoint)
    (done,) = engine.generate([Request([5], messages=CHAT)], Sampling(3))
    assert done.tokens == tuple(b"<search>x")
    assert (done.stop, done.logprobs, len(endpoint.seen)) == ("eos", (), 1)


@pytest.mark.parametrize(
    ("text", "more", "expected", "stop"),
    [
        ("a", {"stop_reason": "</b>"}, "a</b>", "stop"),
        ("a", {"matched_stop": "</b>"}, "a</b>", "stop"),
        ("<b>x</b><a>y", {}, "<b>x</b><a>y</a>", "stop"),
        ("<a>x<b>y", {}, "<a>x<b>y</b>", "stop"),
        ("plain", {}, "plain", "eos"),
        ("<a>open", {"finish_reason": "length"}, "<a>open", "length"),
        (None, {}, "", "eos"),
    ],
)
def test_restoring_the_stop_string(
    serve: Any, text: str | None, more: dict[str, str], expected: str, stop: str
) -> None:
    engine = connect(serve(lambda path, body: (200, chat_reply(text, **more))))
    stops = ("</a>", "</b>") if "<b>x</b>" not in (text or "") else ("</a>",)
    (done,) = engine.generate([Request([5], messages=CHAT)], Sampling(stop=stops))
    assert (done.text, done.stop) == (expected, stop)


def test_busy_server_is_asked_again_and_its_wait_is_respected(serve: Any) -> None:
    answers = iter(
        [
            (429, {"error": "slow down"}, {"Retry-After": "7"}),
            (503, b"<html>oops", {}),
            (200, b"{nonsense"),
            (200, chat_reply("ok")),
        ]
    )
    endpoint = serve(lambda path, body: next(answers))
    engine = connect(endpoint)
    waits: list[float] = []
    engine._sleep = waits.append
    assert engine.generate([Request([5], messages=CHAT)], Sampling())[0].text == "ok"
    assert waits[0] == 7.0
    assert 0.75 <= waits[1] <= 1.25
    assert 1.5 <= waits[2] <= 2.5


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((500, {"error": {"message": "boom\nand more"}}), "failed: status 500: boom and more"),
        ((200, b"<html>"), "failed: the answer is not JSON"),
        ((200, b'{"choi', {"Content-Length": "100"}), "failed: RemoteProtocolError"),
        ((200, {"id": 1}), "without a choice"),
        ((200, {"choices": ["x"]}), "without a choice"),
        ((401, {"error": {"message": "bad key"}}), "failed: status 401: bad key"),
        (
            (404, {"error": {"message": "The model `m` does not exist"}}),
            "refused the request: .*does not exist",
        ),
        ((301, b"", {"Location": "http://elsewhere/"}), "failed: status 301: Moved Permanently"),
    ],
)
def test_failures_are_one_line_errors(serve: Any, answer: Answer, message: str) -> None:
    endpoint = serve(lambda path, body: answer)
    engine = connect(endpoint, attempts=2)
    with pytest.raises(EngineError, match=message) as caught:
        engine.generate([Request([5], messages=CHAT)], Sampling())
    assert "\n" not in str(caught.value)
    assert len(endpoint.seen) <= 2


@pytest.mark.parametrize("status", [400, 413, 422])
def test_one_request_that_is_refused_among_others_is_its_own_fault(serve: Any, status: int) -> None:
    def answer(path: str, body: dict[str, Any]) -> Answer:
        if "forbidden" in body["messages"][0]["content"]:
            return status, {"error": {"message": "content filter"}}
        return 200, chat_reply("ok")

    endpoint = serve(answer)
    engine = connect(endpoint)
    texts = ["fine", "forbidden", "fine"]
    requests = [Request([5], messages=(Message("user", text),)) for text in texts]
    first, refused, last = engine.generate(requests, Sampling())
    assert (first.text, first.fault, last.text, last.fault) == ("ok", "", "ok", "")
    assert (refused.tokens, refused.text, refused.stop) == ((), "", "")
    assert refused.fault == f"{engine.name} refused the request: status {status}: content filter"
    assert len(endpoint.seen) == 3  # not asked again: it would be refused again
    # An endpoint that has not answered anything yet may refuse for any reason.
    with pytest.raises(EngineError, match="content filter"):
        connect(endpoint).generate(requests[1:2], Sampling())


def test_a_model_that_is_gone_ends_the_work(serve: Any) -> None:
    answers = iter([(200, chat_reply("ok")), (404, {"error": {"message": "no such model"}})])
    engine = connect(serve(lambda path, body: next(answers)))
    assert engine.generate([Request([5], messages=CHAT)], Sampling())[0].text == "ok"
    with pytest.raises(EngineError, match="no such model"):
        engine.generate([Request([5], messages=CHAT)], Sampling())


def test_silent_server_times_out(serve: Any) -> None:
    def slow(path: str, body: dict[str, Any]) -> Answer:
        time.sleep(0.5)
        return 200, chat_reply("late")

    engine = connect(serve(slow), timeout_s=0.1, attempts=2)
    with pytest.raises(EngineError, match="no answer in time"):
        engine.generate([Request([5], messages=CHAT)], Sampling())


def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    engine = OpenAIEngine(f"http://127.0.0.1:{port}", "m", attempts=1)
    with pytest.raises(EngineError, match="failed: ConnectError"):
        engine.generate([Request([5], messages=CHAT)], Sampling())


def test_context_without_room_asks_nothing_and_room_caps_the_reply(
    serve: Any, tokenizer: HFTokenizer
) -> None:
    endpoint = serve(lambda path, body: (200, text_reply("", "length", token_ids=[9] * body["max_tokens"])))
    engine = connect(endpoint, tokenizer=tokenizer, context_length=10)
    full, tight = engine.generate([Request([5] * 10), Request([5] * 7)], Sampling(8))
    assert (full.tokens, full.stop) == ((), "context")
    assert (tight.tokens, tight.stop) == ((9, 9, 9), "context")
    assert len(endpoint.seen) == 1


def test_requests_run_side_by_side_and_answers_keep_their_places(serve: Any) -> None:
    together = threading.Barrier(4, timeout=5)

    def answer(path: str, body: dict[str, Any]) -> Answer:
        if body["seed"]:
            together.wait()
        return 200, chat_reply(str(body["seed"]))

    engine = connect(serve(answer), concurrency=4)
    found = engine.generate([Request([5], seed, CHAT) for seed in range(5)], Sampling())
    assert [c.text for c in found] == ["0", "1", "2", "3", "4"]


def test_context_length_comes_from_the_server(serve: Any) -> None:
    def answer(path: str, body: dict[str, Any]) -> Answer:
        return 200, {"data": [{"id": "other", "max_model_len": 1}, {"id": "m", "max_model_len": 77}]}

    assert OpenAIEngine(serve(answer).url, "m").context_length == 77
    assert OpenAIEngine(serve(lambda path, body: (500, b"")).url, "m").context_length == 32_768


def test_key_comes_from_the_environment_and_stays_out_of_names(
    serve: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")
    endpoint = serve(lambda path, body: (403, {"error": "no"}))
    engine = connect(endpoint, api_key_env="MY_KEY")
    with pytest.raises(EngineError) as caught:
        engine.generate([Request([5], messages=CHAT)], Sampling())
    assert endpoint.headers[0]["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in str(caught.value) + engine.name
    assert "pass" not in OpenAIEngine("http://user:pass@host/v1", "m").name


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x", "http://", ""])
def test_wrong_address(url: str) -> None:
    with pytest.raises(ConfigError, match="http://"):
        OpenAIEngine(url, "m")


def test_wrong_options() -> None:
    with pytest.raises(ConfigError, match="needs the served model's tokenizer"):
        OpenAIEngine("http://x", "m", api="text")
    with pytest.raises(ConfigError, match="at least 1"):
        OpenAIEngine("http://x", "m", concurrency=0)


def test_opened_by_name(serve: Any) -> None:
    endpoint = serve(chat_only)
    engine = open_engine(f"openai:{endpoint.url}/v1#org/model:tag", context_length=50)
    assert engine.name == f"openai:{endpoint.url}/v1#org/model:tag"
    engine.generate([Request([5], messages=CHAT)], Sampling())
    assert endpoint.seen[0][1]["model"] == "org/model:tag"


def serving_python() -> str | None:
    """A Python whose transformers can serve: $SLEUTH_SERVE_PYTHON or this one."""
    python = os.environ.get("SLEUTH_SERVE_PYTHON", sys.executable)
    found = shutil.which(python)
    check = "from transformers.utils.import_utils import is_serve_available as a; raise SystemExit(not a())"
    return (
        found if found and subprocess.run([found, "-c", check], capture_output=True).returncode == 0 else None
    )


@pytest.mark.slow
def test_real_server_gives_the_local_tokens(make_model: Any, hf_tokenizer: Any, tmp_path: Path) -> None:
    python = serving_python()
    if python is None:
        pytest.skip("transformers[serving] is not installed here nor in $SLEUTH_SERVE_PYTHON")
    model = make_model(bos_token_id=1, eos_token_id=2)
    model.save_pretrained(tmp_path)
    hf_tokenizer.save_pretrained(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [python, "-m", "transformers.cli.transformers", "serve", str(tmp_path), "--port", str(port)]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--device", "cpu"], stdout=log, stderr=log
        )
    try:
        wait_until_open(port, server)
        compare_with_local(f"openai:http://127.0.0.1:{port}/v1#{tmp_path}", model, hf_tokenizer)
    finally:
        server.terminate()
        server.wait(20)


def wait_until_open(port: int, server: subprocess.Popen[bytes]) -> None:
    for _ in range(240):
        assert server.poll() is None, "the server ended"
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise AssertionError("the server did not open its port")


def compare_with_local(spec: str, model: Any, hf_tokenizer: Any) -> None:
    local = TransformersEngine(model, hf_tokenizer)
    turns = (Message("user", "capital of France"),)
    request = Request(local.tokenizer.chat(turns), 0, turns)
    sampling = Sampling(max_new_tokens=12, temperature=0)
    (expected,) = local.generate([request], sampling)
    for api in ("text", "chat"):
        engine = open_engine(spec, tokenizer=local.tokenizer, context_length=200, api=api)
        (found,) = engine.generate([request], sampling)
        assert found.text == expected.text
        middle = expected.text[3:5]
        (cut,) = engine.generate([request], Sampling(12, 0, stop=(middle,)))
        assert cut.stop == "stop"
        assert cut.text == local.generate([request], Sampling(12, 0, stop=(middle,)))[0].text
        assert isinstance(engine, OpenAIEngine)
        engine.close()
