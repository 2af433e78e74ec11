"""Loading of models by name with transformers: quiet, from a folder or the hub, failures in one line."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import getproxies

from sleuth.errors import EngineError


@contextmanager
def loading(source: str, what: str, extra: str = "train") -> Iterator[dict[str, bool]]:
    """Keyword arguments for loading `source`, a folder or hub name, that never run a repository's code.

    Every failure inside the block becomes a one-line EngineError; a missing package names its `extra`.
    """
    try:
        from safetensors import SafetensorError

        failures = (OSError, ValueError, KeyError, TypeError, ImportError, RuntimeError, SafetensorError)
        reachable = Path(source).is_dir() or hub_answers()
        with quiet():
            yield {"trust_remote_code": False, "local_files_only": not reachable}
    except ModuleNotFoundError as error:
        install = f"pip install '.[{extra}]' in the Sleuth checkout"
        raise EngineError(f"{what} needs {error.name}: {install}") from error
    except Exception as error:
        # tokenizers raises a bare Exception for a damaged tokenizer.json; other subclasses are bugs.
        if type(error) is not Exception and not isinstance(error, failures):
            raise
        offline = "" if reachable else "no such folder, and the hub cannot be reached: "
        raise EngineError(f"cannot load {what}: {offline}{first_line(error)}") from error


@contextmanager
def quiet() -> Iterator[None]:
    """Silence transformers' progress bars and notices while loading; errors still raise."""
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
    """Whether the hub's host name resolves; if not, the client would retry for a minute per file."""
    from huggingface_hub import constants

    try:
        return bool(getproxies() or socket.getaddrinfo(urlparse(constants.ENDPOINT).hostname, 443))
    except OSError:
        return False


def first_line(error: BaseException) -> str:
    """The first line of an error's text, or its class name if the text is empty."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
