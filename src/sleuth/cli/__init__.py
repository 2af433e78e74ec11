"""The command line: one file per verb. Errors become one line and a non-zero exit, here and nowhere else.

A verb's module has `configure(parser)` and `run(arguments) -> exit code`. Heavy libraries are
imported inside `run`, so that `sleuth --help` is fast.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from types import ModuleType
from typing import NoReturn

from sleuth import __version__
from sleuth.errors import RankError, SleuthError

VERBS = {
    "demo": ("runs", "the whole story on real input: index, base, warm start, GRPO, report"),
    "demonstrate": ("runs", "let a model answer training questions; right answers become demonstrations"),
    "judge": ("results", "train or measure the entailment judge on labelled pairs"),
    "index": ("retrieval", "build a search index from files, folders or a data set"),
    "search": ("retrieval", "search an index"),
    "ask": ("runs", "answer one question from an index, with the evidence"),
    "chat": ("runs", "answer questions typed in the terminal, with the evidence"),
    "train": ("runs", "train a recipe"),
    "eval": ("runs", "evaluate a recipe or a finished run on a whole question file"),
    "export": ("runs", "write a run for the Hugging Face hub, or a recipe for training on a cluster by verl"),
    "compare": ("results", "compare evaluated runs question by question"),
    "published": ("results", "list the papers' result tables, or compare a run with them"),
    "recipes": ("runs", "list the recipes"),
    "reward": ("results", "score transcripts written elsewhere with a recipe's reward"),
    "robustness": ("runs", "evaluate under noise, paraphrase, missing or contradicting evidence, as a curve"),
    "score": ("results", "score a file of predictions by a data set's official rules"),
    "serve": ("service", "serve agents over an OpenAI-compatible API, with a web page"),
    "show": (
        "service",
        "show a run and its episodes in the browser, live while it trains, or as one HTML file",
    ),
    "feedback": (
        "service",
        "export people's verdicts on served answers as training questions",
    ),
    "synth": ("service", "write training questions over documents, checked, without labels"),
    "study": ("results", "list the papers' tables and figures, or run one"),
    "serve-retriever": ("retrieval", "serve an index to search agents, over HTTP or MCP"),
}
"""Verb → its room and one line of help; the module is sleuth.cli.<room>.<verb>_, with "_" for "-"."""


class _Parser(argparse.ArgumentParser):
    """argparse with one-line errors."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see '{self.prog} --help')\n")


def build_parser(verb: str | None) -> argparse.ArgumentParser:
    """The parser; only the chosen verb's module is imported and configured."""
    about = "Train, evaluate and serve RAG agents that show their evidence."
    parser = _Parser(prog="sleuth", description=about)
    parser.add_argument("--version", action="version", version=f"sleuth {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    for name, (_, summary) in VERBS.items():
        sub = verbs.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == verb:
            _module(name).configure(sub)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a character shows its code point.
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    if given[:1] == ["study"] and given[1:2] in (["published"], ["robustness"]):
        del given[0]  # studies of every published figure, and of one system under perturbation
    verb = next((word for word in given if not word.startswith("-")), None)
    parsed = build_parser(verb).parse_args(given)
    if "TORCHELASTIC_RUN_ID" in os.environ and parsed.verb != "train":
        return _fail(f"{parsed.verb} runs in one process: start it without torchrun")
    # OpenMP threads that spin while other work wants the cores make a step many times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # torch asks Linux for pages of 2 MB: a large tensor then costs few page faults. torch reads this once.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    try:
        code: int = _module(parsed.verb).run(parsed)
        sys.stdout.flush()
        return code
    except RankError:
        return 1
    except SleuthError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):
            return 0  # rich exits when the reader of our output is gone
        # A user's recipe file that calls sys.exit(0) must not look like a run that succeeded.
        return _fail(f"{parsed.verb} was ended by sys.exit({stop.code!r}) in the code it ran")
    except BrokenPipeError:
        # The reader of our output is gone (`| head`): no error, and no place left to write.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, MemoryError) as error:
        return _fail(f"{type(error).__name__}: {error}")


def _module(verb: str) -> ModuleType:
    return import_module(f"sleuth.cli.{VERBS[verb][0]}.{verb.replace('-', '_')}_")


def _fail(line: str, code: int = 1) -> int:
    print(f"sleuth: {' '.join(line.split())}", file=sys.stderr)
    return code
