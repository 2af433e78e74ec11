"""OpenVINOEngine on a real OpenVINO. `make test-openvino` runs them in an environment of their own."""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch

from sleuth.engines import open_engine
from sleuth.engines.base import Request, Sampling
from sleuth.engines.openvino import BLOCK
from sleuth.errors import EngineError
from sleuth.training.policy import Policy
from support.models import TOKENIZER, build_model
from support.other_engines import PROMPTS, assert_equal, assert_tempered, change, own, requests

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("openvino_genai") is None, reason="OpenVINO is not installed here: make test-openvino"
    ),
]
TEMPERATURE = 0.7
GREEDY = Sampling(16, temperature=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama with tied embeddings."""
    path = tmp_path_factory.mktemp("tied-llama")
    sizes = {"hidden_size": 128, "head_dim": 32, "max_position_embeddings": 256}
    model = build_model(**sizes, tie_word_embeddings=True)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)  # less certain, so that samples differ
    model.save_pretrained(path)
    TOKENIZER.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def _engine(folder: Path) -> Any:
    return open_engine(f"openvino:{folder}", cache_gib=1)


@pytest.fixture
def policy(folder: Path) -> Policy:
    return Policy.load(str(folder), device="cpu", precision="float32")


@pytest.fixture
def engine(_engine: Any, policy: Policy) -> Any:
    """OpenVINO with the weights of `policy`."""
    _engine.sync(policy)
    return _engine


@pytest.mark.parametrize("stops", [(), ("e", "</")])
def test_greedy_completions_are_those_of_our_decoder(engine: Any, policy: Policy, stops: tuple[str, ...]):
    found = assert_equal(engine, policy, Sampling(24, temperature=0, stop=stops))
    assert any(done.stop == "stop" for done in found) == bool(stops)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("llama", {}),
        ("llama", {"attention_bias": True}),
        ("qwen2", {}),
        ("qwen3", {}),
        ("mistral-window", {}),
    ],
)
def test_a_sync_carries_every_weight(family: str, changes: dict[str, Any], tmp_path: Path):
    build_model(family, max_position_embeddings=256, **changes).save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    policy = Policy.load(str(tmp_path), device="cpu", precision="float32")
    engine: Any = open_engine(f"openvino:{tmp_path}", cache_gib=1)
    before, mark = assert_equal(engine, policy, GREEDY), engine.fingerprint()
    change(policy)
    engine.sync(policy)
    found = assert_equal(engine, policy, GREEDY)
    assert [done.tokens for done in found] != [done.tokens for done in before]
    assert engine.fingerprint() != mark


def test_equal_weights_are_not_copied_again(engine: Any, policy: Policy, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(policy, "merged", lambda: pytest.fail("copied"))
    engine.sync(policy)


def test_adapters_are_merged(engine: Any, folder: Path):
    policy = Policy.load(str(folder), device="cpu", precision="float32", lora_rank=4)
    change(policy)
    engine.sync(policy)
    assert_equal(engine, policy, GREEDY)


def test_samples_have_the_log_probabilities_of_their_temperature(engine: Any, folder: Path, policy: Policy):
    assert_tempered(engine, policy, 1.0)
    assert all(not done.logprobs for done in engine.generate(requests(), Sampling(4, top_p=0.5)))
    other = Sampling(12, temperature=TEMPERATURE)
    without = engine.generate(requests(), other)
    assert all(not done.logprobs for done in without)
    tempered: Any = open_engine(f"openvino:{folder}", cache_gib=1, temperature=TEMPERATURE)
    tempered.sync(policy)
    assert_tempered(tempered, policy, TEMPERATURE)
    assert [done.tokens for done in tempered.generate(requests(), other)] == [d.tokens for d in without]
    greedy, wanted = tempered.generate(requests(), GREEDY), own(policy).generate(requests(), GREEDY)
    assert [done.tokens for done in greedy] == [done.tokens for done in wanted]
    assert all(not done.logprobs for done in greedy)


def test_another_seed_gives_another_sample(engine: Any):
    tokens = TOKENIZER.encode(PROMPTS[0])
    one, same, other = engine.generate([Request(tokens, seed) for seed in (3, 3, 4)], Sampling(12))
    assert one.tokens == same.tokens != other.tokens


def test_samples_follow_the_policys_distribution(engine: Any, policy: Policy):
    """First tokens of 4,000 samples: each of the likely ones within four standard deviations."""
    context = TOKENIZER.encode(PROMPTS[0])
    with torch.no_grad():
        wanted = policy.model(torch.tensor([context])).logits[0, -1].softmax(-1)
    found = engine.generate([Request(context, seed) for seed in range(4000)], Sampling(1))
    counts = torch.bincount(torch.tensor([done.tokens[0] for done in found]), minlength=len(wanted)) / 4000
    likely = wanted > 0.005
    assert likely.sum() > 5
    deviations = (wanted * (1 - wanted) / 4000).sqrt()
    assert ((counts - wanted).abs() < 4 * deviations)[likely].all()


def test_an_end_of_text_token_is_kept(engine: Any, policy: Policy):
    """The weights of the output layer make <|im_end|> the most probable token after any context."""
    end = TOKENIZER.eos_token_id
    with torch.no_grad():
        policy.model.get_input_embeddings().weight[end].mul_(30)  # type: ignore[operator]
    engine.sync(policy)
    found = assert_equal(engine, policy, Sampling(20, temperature=0))
    assert any(done.stop == "eos" and done.tokens[-1] == end for done in found)


def test_contexts_without_room(engine: Any, policy: Policy):
    full, nearly = Request([5] * 256), Request([5] * 254)
    sampling = Sampling(8, temperature=0)
    found, wanted = engine.generate([full, nearly], sampling), own(policy).generate([full, nearly], sampling)
    assert [(d.tokens, d.stop) for d in found] == [(d.tokens, d.stop) for d in wanted]
    assert found[0].tokens == ()
    assert found[1].stop == "context"


def test_turns_that_continue_one_beginning_differently_do_not_disturb_each_other(engine: Any, policy: Policy):
    """Rounds of turns, each after the same written text and another observation, as after equal samples."""
    ours, length = own(policy), 12
    contexts = [TOKENIZER.encode("The capital of France")] * 6
    for turn in range(4):
        sampling = Sampling(length, temperature=0, stop=(" ",))
        found, wanted = (e.generate([Request(c) for c in contexts], sampling) for e in (engine, ours))
        for theirs, mine in zip(found, wanted, strict=True):
            assert theirs.tokens == mine.tokens
            assert theirs.logprobs == pytest.approx(mine.logprobs, abs=1e-3)
        contexts = [
            [*c, *done.tokens, *[50 + turn + i] * 11]
            for i, (c, done) in enumerate(zip(contexts, wanted, strict=True))
        ]


def test_a_cancelled_request_frees_its_place(engine: Any):
    decoder = engine._lanes.lanes[0].decoder

    async def cancelled() -> None:
        task = asyncio.ensure_future(engine.sample(Request([7, 8, 9]), Sampling(240)))
        while not (decoder._handles or task.done()):
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())
    engine._lanes.wait_until_idle()
    assert not decoder._handles
    assert not engine._lanes.lanes[0].unfinished
    assert not decoder._pipeline.has_non_finished_requests()
    assert engine.generate(requests(1), Sampling(4))[0].tokens


def test_memory_is_given_back_and_taken_again(engine: Any, policy: Policy):
    engine.generate(requests(), GREEDY)
    engine.release()
    assert engine._lanes.lanes[0].decoder._pipeline is None
    assert_equal(engine, policy, GREEDY)


@contextmanager
def cache_of(engine: Any, blocks: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The engine with a cache of so many blocks."""
    plan = engine._plan()
    plan.num_kv_blocks = blocks
    with monkeypatch.context() as patched:
        patched.setattr(engine, "_plan", lambda: plan)
        engine.release()
        yield
    engine.release()


def test_turns_wait_for_room_in_the_cache(engine: Any, monkeypatch: pytest.MonkeyPatch):
    decoder, most = engine._lanes.lanes[0].decoder, 0
    add = decoder._add

    def counted(name: str, turn: Any) -> None:
        nonlocal most
        add(name, turn)
        open_turns = [decoder._open[name] for name in decoder._handles]
        most = max(most, sum((len(t.context) + t.limit) // BLOCK + 1 for t in open_turns))

    monkeypatch.setattr(decoder, "_add", counted)
    rng = random.Random(0)
    prompts = [[rng.randrange(3, 60) for _ in range(rng.randrange(40, 150))] for _ in range(10)]
    many = [
        Request([*prompt, *(rng.randrange(3, 60) for _ in range(rng.randrange(9)))]) for prompt in prompts * 4
    ]
    with cache_of(engine, 12, monkeypatch):
        together = engine.generate(many, Sampling(40, temperature=0.0))
    assert 0 < most <= 12  # a full cache preempts turns, which then get wrong tokens
    alone = [engine.generate([request], Sampling(40, temperature=0.0))[0] for request in many]
    assert [done.tokens for done in together] == [done.tokens for done in alone]


def test_a_context_larger_than_the_cache_is_an_error(engine: Any, monkeypatch: pytest.MonkeyPatch):
    error = pytest.raises(EngineError, match="no room for 200 tokens: give a larger cache_gib")
    with cache_of(engine, 2, monkeypatch), error:
        engine.generate([Request([7] * 200)], Sampling(4))
    assert engine.generate([Request([7] * 200)], Sampling(4))[0].tokens


def test_text_is_passed_on_as_it_is_written(engine: Any):
    pieces: list[str] = []
    request = Request(TOKENIZER.encode(PROMPTS[0]), on_text=pieces.append)
    (done,) = engine.generate([request], Sampling(8, temperature=0))
    assert len(pieces) > 1
    assert "".join(pieces) == done.text


def test_foreign_tokens_and_models_are_refused(engine: Any, tmp_path: Path):
    with pytest.raises(EngineError, match="token id 400 is not in"):
        engine.generate([Request([400])], Sampling(4))
    build_model("gemma3").save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    with pytest.raises(EngineError, match=r"^OpenVINO cannot run .+$") as caught:
        open_engine(f"openvino:{tmp_path}")
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("one_thread")
def test_bfloat16_runs_with_one_thread_of_torch(folder: Path):
    engine = open_engine(f"openvino:{folder}", dtype="bfloat16", cache_gib=1)
    assert all(done.tokens for done in engine.generate(requests(4), GREEDY))
