"""sleuth serve: trained runs, or any model with every recipe, over an OpenAI-compatible API and a web page."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sleuth.cli.arguments import add_shared
from sleuth.cli.runs.asking import run_recipe
from sleuth.cli.service import listening
from sleuth.errors import ConfigError

if TYPE_CHECKING:
    from sleuth.agent import Agent
    from sleuth.recipe import Recipe


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="*", type=Path, metavar="RUN", help="run folders with trained models")
    add_shared(parser, "--model", "--index", "--set")
    recipe = "serve --model with this recipe; several times for several (default: every recipe, rag first)"
    parser.add_argument("--recipe", action="append", default=[], metavar="NAME", help=recipe)
    judge = (
        "checks answers against their citations: lexical (default), small, openai:<url>#<model>, a classifier"
    )
    parser.add_argument("--judge", default="lexical", metavar="NAME", help=judge)
    store = "folder for answered questions and feedback (default: RUN/served, or served)"
    parser.add_argument("--store", type=Path, metavar="DIR", help=store)
    mcp = "serve 'ask' by the first agent, 'search' and 'fetch' over MCP on stdio instead"
    parser.add_argument("--mcp", action="store_true", help=mcp)
    listening.add_arguments(parser, 8080)
    limits = parser.add_argument_group("limits")
    for option, kind, text in (
        ("--max-running", int, "episodes at a time (default 16)"),
        ("--max-waiting", int, "waiting requests beyond which a request gets 429 (default 1000)"),
        ("--timeout-s", float, "seconds until a request gets 503 (default 300)"),
        ("--max-body-bytes", int, "largest request (default 1 MiB)"),
    ):
        limits.add_argument(option, type=kind, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> int:
    try:
        _serve_mcp(arguments) if arguments.mcp else _serve(arguments)
    except ModuleNotFoundError as error:
        extra = "mcp" if arguments.mcp else "serve"
        raise ConfigError(
            f"serving needs {error.name}: pip install '.[{extra}]' in the Sleuth checkout"
        ) from error
    return 0


def _serve_mcp(arguments: argparse.Namespace) -> None:
    from sleuth.agent import Reply
    from sleuth.serving.mcp_tools import Answer, Quoted, serve_stdio
    from sleuth.text import passage_url

    if not arguments.index:
        raise ConfigError("--mcp serves an index: --index DIR")
    agent = next(iter(open_agents(arguments).values()))

    async def ask(question: str) -> Answer:
        async for event in agent.stream(question):
            if isinstance(event, Reply):
                cited = [
                    Quoted(c.passage.id, c.passage.title, passage_url(c.passage.id), c.quote)
                    for c in event.citations
                ]
                return Answer(event.cited.text, event.cited.status, cited)
        raise AssertionError("an episode ends with a reply")

    serve_stdio(agent.retriever, arguments.index, ask)


def _serve(arguments: argparse.Namespace) -> None:
    from sleuth.service.app import build_app
    from sleuth.service.episodes import Episodes
    from sleuth.service.pool import AgentPool, Limits
    from sleuth.service.run_folder import RunFolder
    from sleuth.service.store import Store, episodes_file
    from sleuth.service.viewer import Viewer
    from sleuth.serving.server import run_app

    given = {
        name: getattr(arguments, name)
        for name in ("max_running", "max_waiting", "timeout_s", "max_body_bytes")
    }
    token = listening.token_of(arguments)
    limits = Limits(token=token, **{name: value for name, value in given.items() if value is not None})
    agents = open_agents(arguments)
    folder = arguments.store or (arguments.runs[0] / "served" if arguments.runs else Path("served"))
    store = Store(folder)
    runs = [RunFolder(path, is_served=True) for path in arguments.runs]
    viewer = Viewer(runs, Episodes(lambda: [episodes_file(folder)]), list(agents))
    what = f"answers are stored in {folder}; serving {', '.join(agents)}"
    try:
        run_app(
            lambda: build_app(AgentPool(agents, limits), store, viewer, listening.hosts_of(arguments, token)),
            arguments.host,
            arguments.port,
            lambda url: print(f"{what} at {url}", flush=True),
        )
    finally:
        store.close()


def open_agents(arguments: argparse.Namespace) -> dict[str, Agent]:
    """The agents by name: runs by their folder's name, a model's recipes by theirs. Models are loaded once."""
    from sleuth.agent import Agent, run_model
    from sleuth.engines import open_engine
    from sleuth.judges import open_judge

    if arguments.recipe and arguments.runs and not arguments.model:
        raise ConfigError("--recipe goes with --model; a RUN has its own recipe")
    judge = open_judge(arguments.judge)
    judge.open()
    agents: dict[str, Agent] = {}
    for path in arguments.runs:
        recipe = run_recipe(path).with_settings(arguments.set)
        name = path.resolve().name
        if name in agents:
            raise ConfigError(f"two runs are called {name!r}; serve them one by one")
        agents[name] = Agent.load(recipe, index=arguments.index, model=str(run_model(path)), judge=judge)
    if not arguments.runs or arguments.model:
        names = arguments.recipe or _offered(is_embedded=not arguments.model)
        recipes = {name: _recipe(arguments, name) for name in names}
        engine = open_engine(arguments.model or next(iter(recipes.values())).scale.model)
        agents |= {name: Agent(recipe, engine, recipe.retriever, judge) for name, recipe in recipes.items()}
    return agents


def _offered(*, is_embedded: bool) -> list[str]:
    """Every recipe by name, rag first; for the embedded model those of its size."""
    from sleuth.recipes import RECIPES, recipe_names

    names, sized = ["rag", *(name for name in RECIPES if name != "rag")], recipe_names()
    return [name for name in names if not is_embedded or f"{name}/cpu" in sized]


def _recipe(arguments: argparse.Namespace, name: str) -> Recipe:
    """The named recipe; if it searches, over everything in the index, words and vectors.

    A retriever that the user chose stays: that of a setting, or of a recipe of their own.
    """
    from sleuth.recipes import is_own, load_recipe
    from sleuth.retrievers.none import NoRetriever
    from sleuth.retrievers.opening import open_retriever

    is_whole = "/" in name or is_own(name)
    recipe = load_recipe(name if is_whole or arguments.model else f"{name}/cpu")
    is_chosen = is_own(name) or any(setting.startswith("retriever=") for setting in arguments.set)
    if not is_chosen and not isinstance(recipe.retriever, NoRetriever):
        if not arguments.index:
            raise ConfigError(f"{recipe.name} searches an index and none is named: --index DIR")
        recipe = replace(recipe, retriever=open_retriever(arguments.index))
    recipe = recipe.with_settings(arguments.set)
    if not is_chosen:
        return recipe
    retriever = recipe.retriever
    if arguments.index and not isinstance(retriever, NoRetriever):
        placed = retriever.at(arguments.index)
        # One that searches given passages has none to search here.
        retriever = open_retriever(arguments.index) if placed is retriever else placed
    if retriever.unplaced:
        raise ConfigError(f"{recipe.name} searches an index and none is named: --index DIR")
    retriever.open()
    return replace(recipe, retriever=retriever)
