"""Every command of the documentation runs, with a tiny model, small sizes and local servers."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.documented import World, started, write_folder
from support.pages import PAGES, ROOT, commands

NOT_RUN = {
    "make demo": "takes twenty minutes; tests/smoke runs the demo with a tiny model",
    "make test": "runs this test",
    "python -m vllm.entrypoints": "needs vLLM; tests/engines/test_vllm_server.py starts one (make test-vllm)",
    "sleuth train search-r1/cpu --set scale.engine=vllm": "needs that server; the same tests train on it",
    "python benchmarks/gpu.py": "takes ten minutes on a GPU; tests/gpu and tests/smoke run its parts",
    "python -m pytest -m gpu": "is part of make test",
    "torchrun --standalone --nproc_per_node 8": "needs eight GPUs; the command for four processes is run",
    "sleuth eval /shared/search-r1": "needs a checkpoint of verl; tests/integrations convert one",
    "sleuth study eval-rar/table-2 --scale cpu": "trains for hours; tests/studies run one with a tiny model",
    "sleuth study arena": "trains for hours or days; tests/studies run one with a tiny model",
    "sleuth ask Who discovered radium? --recipe search-r1/cpu": "needs Qdrant; tests/retrievers run its client",
    "sleuth search http://localhost:6333": "needs Qdrant; tests/retrievers run its client",
    "sleuth serve-retriever http://localhost:9200": "needs OpenSearch; tests/retrievers run its client",
    "sleuth search my-index … --rerank BAAI": "downloads a model; tests/encoders run a cross-encoder",
    "sleuth train search-r1/cpu --set retriever=rerank": "needs the model of the next command",
    "python examples/train_": "is run by tests/smoke/test_examples.py",
}
"""Beginning of a command → why it is not run here."""
ALL = 3600
"""Longest time of all pages, in seconds, for which the servers run."""


def is_run(words: list[str]) -> bool:
    """Whether no entry of NOT_RUN begins the command."""
    return not any(" ".join(words).startswith(beginning) for beginning in NOT_RUN)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT).with_suffix("")).replace("/", "-")


WITH_COMMANDS = [pytest.param(page, id=name(page)) for page in PAGES if any(map(is_run, commands(page)))]


def test_every_exception_is_a_command_of_a_page():
    written = [" ".join(words) for page in PAGES for words in commands(page)]
    for beginning in NOT_RUN:
        assert any(line.startswith(beginning) for line in written), beginning


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[tuple[Path, World]]:
    """The folder that each page starts from, and the world with its servers."""
    folder = tmp_path_factory.mktemp("documented")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLEUTH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.chdir(folder)
        write_folder(folder, tiny_model)
        direct = f"serve --recipe direct/cpu --model {tiny_model} --index idx --store endpoint".split()
        search = ("serve-retriever", "idx")
        with (
            started(folder, *direct, seconds=ALL) as endpoint,
            started(folder, *search, seconds=ALL) as retriever,
        ):
            yield folder, World(folder, str(tiny_model), f"openai:{endpoint}/v1#direct/cpu", retriever)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands_of_a_page_run(
    page: Path,
    made: tuple[Path, World],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    base, world = made
    folder = shutil.copytree(base, tmp_path / "here", ignore=shutil.ignore_patterns("endpoint"))
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    for words in filter(is_run, commands(page)):
        World(folder, world.model, world.endpoint, world.retriever).run(words)
