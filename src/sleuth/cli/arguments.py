"""Arguments that several verbs share."""

import argparse
from pathlib import Path
from typing import Any

_SHARED: dict[str, dict[str, Any]] = {
    "recipe": {"help": "recipe name such as eval-rar/cpu, .py file, saved JSON or run folder"},
    "--recipe": {"metavar": "NAME", "help": "recipe to follow"},
    "--set": {"action": "append", "default": [], "metavar": "KEY=VALUE", "help": "override a setting"},
    "--model": {"default": "", "metavar": "M", "help": "model name, folder or openai:<url>#<model>"},
    "--index": {"default": "", "metavar": "DIR", "help": "an index built by 'sleuth index'"},
    "--output": {"type": Path, "metavar": "DIR", "help": "result folder; continued if unfinished"},
    "--strict": {"action": "store_true", "help": "stop at the first bad data record"},
    "--json": {"action": "store_true", "help": "machine-readable output"},
}


def add_shared(parser: argparse._ActionsContainer, *names: str, **changes: Any) -> None:
    """Add the named arguments. `changes`, such as a default, apply to each of them."""
    for name in names:
        flags = ("-o", name) if name == "--output" else (name,)
        parser.add_argument(*flags, **_SHARED[name] | changes)
