"""Exports to verl: files, settings, refused recipes, and the engine over verl's servers; verl itself is not needed."""

import asyncio
import json
import shlex
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow.parquet as parquet
import pytest
import yaml

from sleuth.cli import main
from sleuth.engines.base import Completion, Message, Request, Sampling
from sleuth.engines.scripted import ByteTokenizer
from sleuth.integrations.verl.engine import SharedTokenizer, VerlEngine
from sleuth.integrations.verl.scorer import Scorer
from sleuth.recipes import load_recipe
from sleuth.retrievers.servers.remote import Remote
from sleuth.rewards.answer import AnswerReward
from sleuth.types import Question, Score, Trajectory
from support.models import TOKENIZER

Export = Callable[..., Path]


def settings_of(folder: Path) -> dict[str, Any]:
    """verl's settings in a start command."""
    words = shlex.split((folder / "run.sh").read_text().replace("\\\n", " "), comments=True)
    pairs = [word.split("=", 1) for word in words[words.index("verl.trainer.main_ppo") + 1 : -1]]
    return {key: json.loads(value) for key, value in pairs}


def test_a_folder_holds_questions_settings_and_agent_loop(export: Export, capsys: pytest.CaptureFixture[str]):
    folder = export("eviomni/paper", "--nodes", "2", "--engine", "sglang")
    found = settings_of(folder)
    expected = {
        "data.train_batch_size": 4,
        "actor_rollout_ref.actor.ppo_mini_batch_size": 4,
        "actor_rollout_ref.rollout.n": 8,
        "actor_rollout_ref.rollout.name": "sglang",
        "actor_rollout_ref.actor.use_kl_loss": True,
        "actor_rollout_ref.actor.kl_loss_coef": 0.01,
        "actor_rollout_ref.actor.kl_loss_type": "low_var_kl",
        "actor_rollout_ref.actor.loss_agg_mode": "seq-mean-token-mean",
        "algorithm.adv_estimator": "sleuth_grpo",
        "+algorithm.sleuth.scale": "std_floor",
        "trainer.nnodes": 2,
        "trainer.n_gpus_per_node": 2,
    }
    assert {key: found[key] for key in expected} == expected
    rows = parquet.read_table(folder / "train.parquet").to_pylist()
    questions = [msgspec.json.decode(row["extra_info"]["question"], type=Question) for row in rows]
    assert [q.answers for q in questions] == [("Paris",), ("Tokyo",), ("Lima",), ("Santiago",)]
    assert questions[0].passages[1].text == "Tokyo is the seat of Japan."
    assert rows[0]["prompt"] == [{"role": "user", "content": "capital of France"}]
    assert rows[0]["reward_model"] == {"style": "rule", "ground_truth": ["Paris"]}
    (agent,) = yaml.safe_load((folder / "agent_loop.yaml").read_text())
    assert agent["name"] == rows[0]["agent_name"]
    assert agent["folder"] == str(folder)
    recipe = load_recipe(str(folder))
    assert recipe.retriever == Remote("http://127.0.0.1:9")
    assert "verl.model_merger merge" in capsys.readouterr().out


def test_passages_that_come_with_questions_need_no_server(export: Export):
    folder = export("arena/paper", "--index", "")
    assert settings_of(folder)["actor_rollout_ref.actor.kl_loss_type"] == "k2"
    assert settings_of(folder)["actor_rollout_ref.actor.loss_agg_mode"] == "token-mean"


def test_an_own_recipe_keeps_its_file_and_settings(export: Export, tmp_path: Path):
    own = tmp_path / "mine.py"
    own.write_text("from sleuth.recipes.search_r1 import RECIPES\nRECIPE = RECIPES['paper']\n")
    folder = export(str(own), "--set", "algorithm.group_size=6")
    recipe = load_recipe(str(folder))
    assert (recipe.algorithm.group_size, recipe.scale.batch) == (6, 4)
    assert recipe.retriever == Remote("http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["evo-rag/paper"], "it trains by DPO; only GRPO"),
        (["evo-rag/paper", "--set", "algorithm=grpo"], "its reward changes in stages"),
        (
            ["evo-rag/paper", "--set", "algorithm=grpo", "--set", "reward=answer"],
            "its context is cut or renewed",
        ),
        (["search-r1/paper", "--set", "algorithm=rejection-sampling"], "it trains by RejectionSampling"),
        (["ircot"], "it is not trained"),
        (["search-r1/cpu"], "verl has no warm start: run 'sleuth train search-r1/cpu"),
        (
            ["search-r1/cpu", "--set", "scale.warm_start_examples=0"],
            "verl counts groups of equal rewards: set algorithm.drop_zero_variance=false",
        ),
        (
            ["search-r1/paper", "--set", "scale.model=smollm2-135m-instruct"],
            "is known to Sleuth only",
        ),
        (["search-r1/paper"], "pass --index http://HOST:PORT"),
        (["search-r1/paper", "--index", "wiki-index"], "pass --index http://HOST:PORT"),
        (["search-r1/paper", "--index", "http://"], "a server's address is"),
        (
            ["search-r1/paper", "--gpus", "7"],
            "2560 episodes a step (scale.batch × group size) cannot be divided",
        ),
        (["search-r1/paper", "--gpus", "0"], "cluster.gpus must be at least 1"),
        (["search-r1/paper", "--set", "scale.lr_schedule=linear"], "verl has no linear schedule"),
        (["search-r1/paper", "--set", "scale.refill=1"], "verl draws all questions alike"),
        (["search-r1/paper", "--set", "algorithm.train_on=2"], "verl trains on every rollout"),
        (["search-r1/paper", "--set", "algorithm.negative_weight=0.3"], "verl weighs both signs alike"),
        (["search-r1/paper", "--set", "scale.frozen_layers=0.5"], "verl trains every layer"),
        (
            ["search-r1/paper", "--set", "algorithm.drop_zero_variance=true"],
            "verl counts groups of equal rewards",
        ),
    ],
)
def test_a_recipe_that_verl_cannot_train_is_refused_in_one_line(
    words: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert main(["export", "verl", *words, "-o", str(tmp_path / "out")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line
    assert not (tmp_path / "out").exists()


def test_a_batch_without_enough_questions_or_a_folder_in_use_is_refused(
    export: Export, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(AssertionError):
        export("arena/paper", "--set", "scale.batch=6")
    assert "4 training questions are less than one batch of 6" in capsys.readouterr().err
    export("arena/paper")
    with pytest.raises(AssertionError):
        export("arena/paper")
    assert "is not empty" in capsys.readouterr().err


class Servers:
    """verl's server client with one reply; keeps its calls."""

    def __init__(self, reply: str, **fields: Any) -> None:
        tokens = list(reply.encode())
        output = {"token_ids": tokens, "log_probs": [-0.5] * len(tokens), "stop_reason": "completed"}
        self.output = SimpleNamespace(**output | {"extra_fields": {"global_steps": 3}} | fields)
        self.calls: list[dict[str, Any]] = []

    async def generate(self, request_id: str, **call: Any) -> SimpleNamespace:
        self.calls.append({"request_id": request_id, **call})
        return self.output


def engine(servers: Servers, **options: Any) -> VerlEngine:
    shared = {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "logprobs": True}
    return VerlEngine(
        servers, ByteTokenizer(), shared, **({"server": "vllm", "context_length": 50} | options)
    )


def sample(servers: Servers, sampling: Sampling, **options: Any) -> Completion:
    async def run() -> Completion:
        return await engine(servers, **options).sample(Request(tuple(b"abc")), sampling)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("server", "limit", "keep"),
    [
        ("vllm", "max_tokens", "include_stop_str_in_output"),
        ("sglang", "max_new_tokens", "no_stop_trim"),
    ],
)
def test_a_server_gets_tokens_limits_and_stop_strings_in_its_own_words(server: str, limit: str, keep: str):
    servers = Servers("one</a>")
    done = sample(servers, Sampling(90, temperature=0.7, stop=("</a>",)), server=server)
    assert (done.text, done.stop, done.logprobs) == ("one</a>", "stop", (-0.5,) * 7)
    (call,) = servers.calls
    assert call["prompt_ids"] == list(b"abc")
    # 47: the room that is left in the context
    wanted = {limit: 47, keep: True, "stop": ["</a>"], "temperature": 0.7, "top_k": -1, "logprobs": True}
    assert {key: call["sampling_params"][key] for key in wanted} == wanted


@pytest.mark.parametrize(
    ("reply", "fields", "text", "stop"),
    [
        ("one</a>two", {}, "one</a>", "stop"),
        ("one", {}, "one", "eos"),
        ("x" * 9, {}, "x" * 9, "length"),
        ("one", {"log_probs": None}, "one", "eos"),
    ],
)
def test_a_completion_is_read_from_the_tokens(reply: str, fields: dict[str, Any], text: str, stop: str):
    done = sample(Servers(reply, **fields), Sampling(9 if stop == "length" else 20, stop=("</a>",)))
    assert (done.text, done.stop, len(done.tokens)) == (text, stop, len(text))
    assert len(done.logprobs) == (0 if fields else len(text))


def test_an_aborted_request_is_a_fault_and_a_full_context_asks_nothing():
    assert "aborted" in sample(Servers("", stop_reason="aborted"), Sampling()).fault
    servers = Servers("x")
    assert sample(servers, Sampling(), context_length=3).stop == "context"
    assert not servers.calls


def test_a_reward_generates_from_its_own_thread():
    servers = Servers("yes</a>")

    async def run() -> tuple[list[Completion], list[int]]:
        here = engine(servers)
        requests = [Request(tuple(b"ab")), Request(tuple(b"cd"))]
        done = await asyncio.to_thread(here.generate, requests, Sampling(20, temperature=0, stop=("</a>",)))
        return done, here.versions

    done, versions = asyncio.run(run())
    assert [one.text for one in done] == ["yes</a>"] * 2
    assert versions == [3, 3]
    assert len({call["request_id"] for call in servers.calls}) == 1
    assert [call["sampling_params"]["temperature"] for call in servers.calls] == [0, 0]


def test_threads_share_a_tokenizer():
    tokenizer = SharedTokenizer(TOKENIZER)
    texts = [f"capital of {i} " * 50 for i in range(8)]

    def work(text: str) -> bool:
        return all(
            tokenizer.decode(tokenizer.encode(text)) == text and tokenizer.chat([Message("user", text)])
            for _ in range(50)
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, texts))


def test_episodes_that_end_while_a_batch_is_scored_are_one_batch():
    batches: list[int] = []
    first_is_running, may_finish = threading.Event(), threading.Event()

    class Slow(AnswerReward):
        def score(self, trajectories: Sequence[Trajectory], engine: Any = None) -> list[Score]:
            batches.append(len(trajectories))
            if not first_is_running.is_set():
                first_is_running.set()
                may_finish.wait()
            if len(trajectories) == 2:
                raise ValueError("a fault of the reward's code")
            return [Score(float(len(t.question.id)), {}) for t in trajectories]

    async def run() -> list[Any]:
        scorer = Scorer(Slow())
        episodes = [Trajectory(Question("q" * n, "?", ("a",)), ()) for n in range(1, 7)]
        scoring = [asyncio.ensure_future(scorer.score(episodes[0], engine(Servers(""))))]
        await asyncio.to_thread(first_is_running.wait)
        scoring += [asyncio.ensure_future(scorer.score(e, engine(Servers("")))) for e in episodes[1:4]]
        await asyncio.sleep(0)
        may_finish.set()
        scores = [score.total for score in await asyncio.gather(*scoring)]
        later = [scorer.score(e, engine(Servers(""))) for e in episodes[4:]]
        return [*scores, *await asyncio.gather(*later, return_exceptions=True)]

    *scores, one, other = asyncio.run(run())
    assert (scores, batches) == ([1.0, 2.0, 3.0, 4.0], [1, 3, 2])
    assert str(one) == str(other) == "a fault of the reward's code"
