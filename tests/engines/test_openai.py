"""OpenAIEngine against a small server that answers as vLLM, transformers serve and OpenAI do."""

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sleuth.engines import open_engine
from sleuth.engines.base import Completion, Message, Request, Sampling
from sleuth.engines.hf_tokenizer import HFTokenizer
from sleuth.engines.openai import OpenAIEngine
from sleuth.engines.transformers import TransformersEngine
from sleuth.errors import ConfigError, EngineError
from support.models import TOKENIZER, build_model

CHAT = (Message("user", "q"),)
TEXT, TURNS, MODELS = "/v1/completions", "/v1/chat/completions", "/v1/models"


def connect(server: Any, **options: Any) -> OpenAIEngine:
    return OpenAIEngine(server.url, "m", **{"context_length": 1000, "timeout_s": 5.0} | options)


def ask(engine: OpenAIEngine, sampling: Sampling | None = None) -> Completion:
    """The completion of one chat turn."""
    (done,) = engine.generate([Request([5], messages=CHAT)], sampling or Sampling())
    return done


def text_reply(text: str, finish: str = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": text, "finish_reason": finish} | more]}


def chat_reply(text: str | None, finish: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish} | more]}


def chat(reply: Any, status: int = 200, **headers: str) -> tuple[Any, ...]:
    """An exchange with a chat endpoint."""
    return ("POST", TURNS, status, reply, {name.replace("_", "-"): value for name, value in headers.items()})


NO_ROUTE = ("POST", TEXT, 404, {"error": {"message": "no such route"}})


@pytest.fixture
def tokenizer() -> HFTokenizer:
    return HFTokenizer(TOKENIZER)


def test_token_ids_go_out_and_come_back(recorded: Any, tokenizer: HFTokenizer) -> None:
    ids = [*tokenizer.encode("Paris"), 2]
    reply = text_reply("Paris", token_ids=ids, logprobs={"token_logprobs": [-0.5] * len(ids)})
    server = recorded(("POST", TEXT, 200, reply))
    engine = connect(server, tokenizer=tokenizer)
    (done,) = engine.generate([Request([5, 6], seed=2**40 + 3)], Sampling(7, 1.0, 0.9, ("</a>",)))
    assert (list(done.tokens), done.text, done.stop) == (ids, "Paris", "eos")
    assert done.logprobs == (-0.5,) * len(ids)
    assert done.ends[-1] == len("Paris")
    assert engine.api == engine.describe()["api"] == "tokens"
    body = server.requests[0].json
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
    recorded: Any, tokenizer: HFTokenizer, temperature: float, kept: bool
) -> None:
    reply = text_reply("", "length", token_ids=[9, 8], logprobs={"token_logprobs": [-1.0, -2.0]})
    engine = connect(recorded(("POST", TEXT, 200, reply)), tokenizer=tokenizer)
    (done,) = engine.generate([Request([5])], Sampling(2, temperature))
    assert done.logprobs == ((-1.0, -2.0) if kept else ())
    assert (done.tokens, done.stop) == ((9, 8), "length")


def transformers_serve(request: Any) -> tuple[int, Any]:
    """Refuses unknown fields and token prompts, keeps stop strings (recorded from transformers 5.23)."""
    known = {"model", "prompt", "messages", "max_tokens", "temperature", "top_p", "seed", "stop"}
    if unknown := set(request.json) - known:
        return 422, {"detail": f"Unexpected fields in the request: {unknown}"}
    if not isinstance(request.json["prompt"], str):
        return 400, {"detail": "prompt must be a string."}
    return 200, text_reply("<answer>Paris</answer>")


def test_server_that_takes_only_text_and_known_fields(recorded: Any, tokenizer: HFTokenizer) -> None:
    server = recorded(("POST", TEXT, transformers_serve))
    engine = connect(server, tokenizer=tokenizer)
    requests = [Request(tokenizer.chat([Message("user", "say <|im_end|>")]))] * 3
    found = engine.generate(requests, Sampling(stop=("</answer>",)))
    assert {c.stop for c in found} == {"stop"}
    assert list(found[0].tokens) == tokenizer.encode("<answer>Paris</answer>")
    assert found[0].logprobs == ()
    assert len(server.requests) == 2 + 3  # two forms were refused once, by the first request alone
    prompt = "<|im_start|>user\nsay ‹|im_end|><|im_end|>\n<|im_start|>assistant\n"
    assert server.requests[-1].json["prompt"] == prompt


def test_chat_is_the_last_resort_and_a_stripped_stop_string_is_restored(
    recorded: Any, tokenizer: HFTokenizer
) -> None:
    server = recorded(NO_ROUTE, chat(chat_reply("<search>x")))
    engine = connect(server, tokenizer=tokenizer)
    done = ask(engine, Sampling(stop=("</answer>", "</search>")))
    assert (done.text, done.stop) == ("<search>x</search>", "stop")
    assert server.requests[-1].json["messages"] == [{"role": "user", "content": "q"}]
    with pytest.raises(EngineError, match="only chat turns"):
        engine.generate([Request([5])], Sampling())


def test_without_a_tokenizer_chat_in_bytes(recorded: Any) -> None:
    server = recorded(chat(chat_reply("<search>x")))
    done = ask(connect(server), Sampling(3))
    assert done.tokens == tuple(b"<search>x")
    assert (done.stop, done.logprobs, len(server.requests)) == ("eos", (), 1)


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
    recorded: Any, text: str | None, more: dict[str, str], expected: str, stop: str
) -> None:
    stops = ("</a>", "</b>") if "<b>x</b>" not in (text or "") else ("</a>",)
    done = ask(connect(recorded(chat(chat_reply(text, **more)))), Sampling(stop=stops))
    assert (done.text, done.stop) == (expected, stop)


def test_a_busy_or_broken_endpoint_is_asked_again(recorded: Any, pauses: list[float]) -> None:
    truncated = chat(b'{"choi', Content_Length="100")
    server = recorded(
        chat({"error": "slow down"}, 429, Retry_After="7"),
        chat(b"<html>", 503),
        truncated,
        chat(chat_reply("ok")),
    )
    assert ask(connect(server)).text == "ok"
    assert pauses[0] == 7.0
    assert 1 <= pauses[1] <= 1.5
    assert 2 <= pauses[2] <= 2.5


@pytest.mark.parametrize(
    ("exchange", "message"),
    [
        (
            chat({"error": {"message": "boom\nand more"}}, 500),
            r"failed: status 500: boom and more \(tried 2 times\)",
        ),
        (chat(b"<html>"), "without a choice: '<html>'"),
        (chat({"id": 1}), "without a choice"),
        (chat({"choices": ["x"]}), "without a choice"),
        (chat({"error": {"message": "bad key"}}, 401), "refused the request: status 401: bad key"),
        (chat({"error": {"message": "no model m"}}, 404), "refused the request: status 404: no model m"),
        (chat(b"", 301, Location="http://elsewhere/"), "refused the request: status 301: Moved Permanently"),
    ],
)
def test_failures_are_one_line_errors(
    recorded: Any, pauses: list[float], exchange: Any, message: str
) -> None:
    server = recorded(exchange)
    with pytest.raises(EngineError, match=message) as caught:
        ask(connect(server, attempts=2))
    assert "\n" not in str(caught.value)
    assert len(server.requests) <= 2


@pytest.mark.parametrize("status", [400, 413, 422])
def test_one_refused_request_among_others_is_a_fault(recorded: Any, status: int) -> None:
    def answer(request: Any) -> tuple[int, Any]:
        if "forbidden" in request.json["messages"][0]["content"]:
            return status, {"error": {"message": "content filter"}}
        return 200, chat_reply("ok")

    server = recorded(("POST", TURNS, answer))
    engine = connect(server)
    requests = [Request([5], messages=(Message("user", text),)) for text in ("fine", "forbidden", "fine")]
    first, refused, last = engine.generate(requests, Sampling())
    assert (first.text, first.fault, last.text, last.fault) == ("ok", "", "ok", "")
    assert (refused.tokens, refused.text, refused.stop) == ((), "", "")
    assert refused.fault == f"{engine.name} refused the request: status {status}: content filter"
    assert len(server.requests) == 3  # not asked again: it would be refused again
    # An endpoint that has not answered anything yet may refuse for any reason.
    with pytest.raises(EngineError, match="content filter"):
        connect(server).generate(requests[1:2], Sampling())


def test_a_model_that_is_gone_raises(recorded: Any) -> None:
    engine = connect(recorded(chat(chat_reply("ok")), chat({"error": {"message": "no such model"}}, 404)))
    assert ask(engine).text == "ok"
    with pytest.raises(EngineError, match="no such model"):
        ask(engine)


def test_a_silent_endpoint_times_out(recorded: Any, pauses: list[float]) -> None:
    over = threading.Event()

    def silent(_: Any) -> tuple[int, Any]:
        over.wait(20)
        return 200, chat_reply("late")

    engine = connect(recorded(("POST", TURNS, silent)), timeout_s=0.1, attempts=2)
    with pytest.raises(EngineError, match=r"failed: ReadTimeout: \(tried 2 times\)|failed: ReadTimeout"):
        ask(engine)
    over.set()


def test_no_endpoint_at_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(EngineError, match="failed: ConnectError"):
        ask(OpenAIEngine(f"http://127.0.0.1:{port}", "m", attempts=1))


def test_a_context_without_room_is_not_sent_and_room_caps_the_reply(
    recorded: Any, tokenizer: HFTokenizer
) -> None:
    def answer(request: Any) -> tuple[int, Any]:
        return 200, text_reply("", "length", token_ids=[9] * request.json["max_tokens"])

    server = recorded(("POST", TEXT, answer))
    engine = connect(server, tokenizer=tokenizer, context_length=10)
    full, tight = engine.generate([Request([5] * 10), Request([5] * 7)], Sampling(8))
    assert (full.tokens, full.stop) == ((), "context")
    assert (tight.tokens, tight.stop) == ((9, 9, 9), "context")
    assert len(server.requests) == 1


def test_requests_run_concurrently_up_to_the_limit(recorded: Any) -> None:
    together, running, most = threading.Barrier(4, timeout=10), [0], [0]

    def answer(request: Any) -> tuple[int, Any]:
        running[0] += 1
        most[0] = max(most[0], running[0])
        if request.json["seed"]:
            together.wait()
        running[0] -= 1
        return 200, chat_reply(str(request.json["seed"]))

    engine = connect(recorded(("POST", TURNS, answer)), concurrency=4)
    found = engine.generate([Request([5], seed, CHAT) for seed in range(9)], Sampling())
    assert [c.text for c in found] == [str(seed) for seed in range(9)]
    assert most[0] <= 4


def test_every_event_loop_can_use_the_engine(recorded: Any) -> None:
    engine = connect(recorded(chat(chat_reply("ok"))))

    async def from_a_coroutine() -> str:
        done = await engine.sample(Request([5], messages=CHAT), Sampling())
        return done.text + ask(engine).text  # plain code inside a running loop, as in a notebook

    assert ask(engine).text == "ok"
    assert [asyncio.run(from_a_coroutine()) for _ in range(2)] == ["okok", "okok"]
    assert not engine._connections  # every loop has closed its own


def test_context_length_comes_from_the_server(recorded: Any) -> None:
    listing = {"data": [{"id": "other", "max_model_len": 1}, {"id": "m", "max_model_len": 77}]}
    assert OpenAIEngine(recorded(("GET", MODELS, 200, listing)).url, "m").context_length == 4 * 77
    assert OpenAIEngine(recorded(("GET", MODELS, 500, b"")).url, "m").context_length == 4 * 32_768


def test_the_key_comes_from_the_environment_and_is_not_shown(
    recorded: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "s3cret")
    server = recorded(chat({"error": "no"}, 403))
    engine = connect(server, api_key_env="MY_KEY")
    with pytest.raises(EngineError) as caught:
        ask(engine)
    assert server.requests[0].headers["Authorization"] == "Bearer s3cret"
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


def test_opened_by_name(recorded: Any) -> None:
    server = recorded(chat(chat_reply("ok")))
    engine = open_engine(f"openai:{server.url}/v1#org/model:tag", context_length=50)
    assert engine.name == f"openai:{server.url}/v1#org/model:tag"
    engine.generate([Request([5], messages=CHAT)], Sampling())
    assert server.requests[0].json["model"] == "org/model:tag"


def serving_python() -> str | None:
    """A Python whose transformers can serve: $SLEUTH_SERVE_PYTHON or this one."""
    python = os.environ.get("SLEUTH_SERVE_PYTHON", sys.executable)
    found = shutil.which(python)
    check = "from transformers.utils.import_utils import is_serve_available as a; raise SystemExit(not a())"
    return (
        found if found and subprocess.run([found, "-c", check], capture_output=True).returncode == 0 else None
    )


@pytest.mark.slow
def test_real_server_gives_the_local_tokens(tmp_path: Path) -> None:
    python = serving_python()
    if python is None:
        pytest.skip("transformers[serving] is not installed here nor in $SLEUTH_SERVE_PYTHON")
    model = build_model(bos_token_id=1, eos_token_id=2)
    model.save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
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
        compare_with_local(f"openai:http://127.0.0.1:{port}/v1#{tmp_path}", model)
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


def compare_with_local(spec: str, model: Any) -> None:
    local = TransformersEngine(model, TOKENIZER)
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


def test_a_stream_that_breaks_off_is_not_sent_twice(recorded: Any) -> None:
    def events(*pieces: str, ends: bool) -> bytes:
        chunks = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
        chunks += [{"choices": [{"delta": {}, "finish_reason": "stop"}]}] if ends else []
        return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)

    kind = {"Content_Type": "text/event-stream"}
    whole = events("Hello ", "wor", "ld", ends=True)
    server = recorded(chat(events("Hello ", "wor", ends=False), **kind), chat(whole, **kind))
    pieces: list[str] = []
    (done,) = connect(server).generate([Request([5], messages=CHAT, on_text=pieces.append)], Sampling())
    assert (done.text, pieces) == ("Hello world", ["Hello ", "wor", "ld"])


def test_without_a_tokenizer_the_length_is_counted_in_bytes(recorded: Any) -> None:
    server = recorded(("GET", MODELS, 200, {"data": [{"id": "m", "max_model_len": 4096}]}))
    assert connect(server, context_length=None).context_length == 4 * 4096


def test_a_mistyped_address_is_one_line() -> None:
    with pytest.raises(ConfigError, match="is not an address"):
        open_engine("openai:http://localhost:80a/v1#m")
