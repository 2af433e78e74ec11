"""sleuth show: runs, their curves and their episodes, in the browser or as one HTML file."""

from __future__ import annotations

import argparse
from pathlib import Path

from sleuth.cli.service import listening
from sleuth.errors import ConfigError


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="run folders; several are compared")
    page = "write the page with its curves and episodes as one file instead of serving it"
    parser.add_argument("--html", type=Path, metavar="FILE", help=page)
    most = "maximum episodes of each source in the file, the last ones (default 200)"
    parser.add_argument("--episodes", type=int, default=200, metavar="N", help=most)
    listening.add_arguments(parser, 8081)


def run(arguments: argparse.Namespace) -> int:
    try:
        _show(arguments)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"showing a run needs {error.name}: pip install '.[serve]' in the Sleuth checkout"
        ) from error
    return 0


def _show(arguments: argparse.Namespace) -> None:
    from sleuth.service.app import build_viewer_app
    from sleuth.service.page import write_page
    from sleuth.service.run_folder import RunFolder
    from sleuth.service.viewer import Viewer
    from sleuth.serving.server import run_app

    names = [path.resolve().name for path in arguments.runs]
    if len(set(names)) < len(names):
        names = [str(path) for path in arguments.runs]
    viewer = Viewer([RunFolder(path, name) for path, name in zip(arguments.runs, names, strict=True)])
    if arguments.html:
        if arguments.episodes < 0:
            raise ConfigError(f"--episodes must not be negative, not {arguments.episodes}")
        write_page(arguments.html, viewer, arguments.episodes)
        print(f"page: {arguments.html}")
        return
    token = listening.token_of(arguments)
    run_app(
        lambda: build_viewer_app(viewer, token, listening.hosts_of(arguments, token)),
        arguments.host,
        arguments.port,
        lambda url: print(f"showing {', '.join(names)} at {url}", flush=True),
    )
