"""The command line: one file per verb. Errors become one line and a non-zero exit, here and nowhere else.

A verb's module offers `configure(parser)` and `run(arguments) -> exit code`, and imports heavy
things inside `run`, so that `sleuth --help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from types import ModuleType
from typing import NoReturn

from sleuth import __version__
from sleuth.errors import SleuthError

VERBS = {
    "demo": "the whole story on real input: index, base, warm start, GRPO, report",
    "judge": "train or measure the entailment judge on labelled pairs",
    "index": "build a search index from files, folders or a data set",
    "search": "search an index",
    "ask": "answer one question from an index, with the evidence",
    "train": "train a recipe",
    "eval": "evaluate a recipe or a finished run on a whole question file",
    "compare": "compare evaluated runs question by question",
    "published": "list the papers' result tables, or set a run beside them",
    "recipes": "list the recipes",
    "reward": "score transcripts written elsewhere with a recipe's reward",
    "robustness": "evaluate under noise, paraphrase, missing or contradicting evidence, as a curve",
    "score": "score a file of predictions by a data set's official rules",
    "serve-retriever": "serve an index to search agents, over HTTP or MCP",
}
"""Verb → one line of help; the module is sleuth.cli.<verb>_, with "_" for "-"."""

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130


class _Parser(argparse.ArgumentParser):
    """argparse with one-line errors."""

    def error(self, message: str) -> NoReturn:
        """Print one line and leave with status 2."""
        self.exit(EXIT_USAGE, f"{self.prog}: {message} (see '{self.prog} --help')\n")


def build_parser(verb: str | None) -> argparse.ArgumentParser:
    """The parser; only the chosen verb's module is imported and configured."""
    parser = _Parser(
        prog="sleuth", description="Train, evaluate and serve RAG agents that show their evidence."
    )
    parser.add_argument("--version", action="version", version=f"sleuth {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=_Parser)
    for name, summary in VERBS.items():
        sub = verbs.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == verb:
            _module(name).configure(sub)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that cannot show a letter shows its number.
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    verb = next((word for word in given if not word.startswith("-")), None)
    parsed = build_parser(verb).parse_args(given)
    # OpenMP threads that spin while other work wants the cores make a step many times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        code: int = _module(parsed.verb).run(parsed)
        sys.stdout.flush()
        return code
    except SleuthError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return _fail("interrupted", EXIT_INTERRUPTED)
    except SystemExit as stop:
        # A recipe file of the user's that calls sys.exit(0) would pass for a run that succeeded.
        return _fail(f"{parsed.verb} was ended by sys.exit({stop.code!r}) in the code it ran")
    except BrokenPipeError:
        # The reader of our output left (say, `| head`): nothing is wrong, and nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, MemoryError) as error:
        return _fail(f"{type(error).__name__}: {error}")


def _module(verb: str) -> ModuleType:
    return import_module(f"sleuth.cli.{verb.replace('-', '_')}_")


def _fail(line: str, code: int = EXIT_ERROR) -> int:
    print(f"sleuth: {' '.join(line.split())}", file=sys.stderr)
    return code
