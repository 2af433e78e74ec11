"""Options and fixtures of all tests: arithmetic, threads, and a tiny real model on disk."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from support.recorded import Recorded, replay

# On a machine that does other work as well, how long one example takes says nothing about the code.
settings.register_profile("sleuth", deadline=None)
settings.load_profile("sleuth")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--auto-precision",
        choices=("float32", "bfloat16"),
        help='what precision="auto" means on this machine; bfloat16 is emulated where the CPU lacks it',
    )


@pytest.fixture(autouse=True)
def auto_precision(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolve precision="auto" as --auto-precision asks, in this process only."""
    if wanted := request.config.getoption("--auto-precision"):
        monkeypatch.setattr("sleuth.training.policy._cpu_has_fast_bfloat16", lambda: wanted == "bfloat16")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """One torch thread: sums split over more threads round differently, and the engine makes a lane of each."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama of three layers with its tokenizer, saved as transformers saves any model."""
    from support.models import TOKENIZER, build_model

    folder = tmp_path_factory.mktemp("tiny-model")
    build_model(max_position_embeddings=1024).save_pretrained(folder)
    TOKENIZER.save_pretrained(folder)
    return folder


@pytest.fixture
def recorded() -> Iterator[Callable[..., Recorded]]:
    """Starts HTTP servers from exchanges; see Recorded."""
    with ExitStack() as stack:
        yield lambda *exchanges: stack.enter_context(replay(*exchanges))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Pauses between attempts in seconds, which are recorded instead of waited for."""
    made: list[float] = []

    async def sleep(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr("sleuth.retries.time", SimpleNamespace(sleep=made.append, time=time.time))
    monkeypatch.setattr("sleuth.retries.asyncio", SimpleNamespace(sleep=sleep))
    return made
