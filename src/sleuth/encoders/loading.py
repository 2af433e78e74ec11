"""Loading a model by name with transformers, quietly, from a folder or the hub; every failure is one line.

Shared with the engines, which lie above this room.
"""

from __future__ import annotations

import socket
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sleuth.errors import EngineError


@contextmanager
def loading(source: str, what: str) -> Iterator[dict[str, bool]]:
    """Options to load `source`, a folder or a hub name, with.

    Every failure leaves as an EngineError "cannot load <what>: …" of one line. Code that a
    repository ships is never run.
    """
    from safetensors import SafetensorError

    failures = (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError, SafetensorError)
    reachable = Path(source).is_dir() or hub_answers()
    try:
        with quiet():
            yield {"trust_remote_code": False, "local_files_only": not reachable}
    except Exception as error:
        # tokenizers reports a damaged tokenizer.json as a bare Exception; its subclasses we do not name are bugs.
        if type(error) is not Exception and not isinstance(error, failures):
            raise
        offline = "" if reachable else "no such folder, and the hub cannot be reached: "
        raise EngineError(f"cannot load {what}: {offline}{first_line(error)}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Hold back transformers' progress bars and notices while loading; errors still raise."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def hub_answers() -> bool:
    """Whether the hub's name resolves; if not, the client would retry for a minute per file."""
    from huggingface_hub import constants

    if urllib.request.getproxies():
        return True
    try:
        socket.getaddrinfo(urllib.parse.urlparse(constants.ENDPOINT).hostname, 443)
    except OSError:
        return False
    return True


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its kind if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
