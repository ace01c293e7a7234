"""Commands of the view against a stand-in for an API server."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from console.api_server import ApiServer
from console.kubeconfig import connect
from gpu_share import main
from tests.console.objects import at_one_moment
from tests.console.stand_in import StandIn, serve

Asked = Callable[..., Result]
Served = Callable[[StandIn], Path]


@pytest.fixture(autouse=True)
def _moment() -> Iterator[None]:
    with at_one_moment():
        yield


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[[StandIn], Path]]:
    """Serve a stand-in until the test ends."""
    with ExitStack() as stack:
        yield lambda known: stack.enter_context(serve(known, tmp_path))


@pytest.fixture
def connected(served: Callable[[StandIn], Path]) -> Callable[[StandIn], ApiServer]:
    """Connect to a stand-in as a command does."""
    return lambda known: connect(kubeconfig=served(known))


@pytest.fixture
def asked(served: Callable[[StandIn], Path]) -> Callable[..., Result]:
    """Run a command of the view with a stand-in."""

    def ask(known: StandIn, command: str, *words: str) -> Result:
        return CliRunner().invoke(main, [command, "--kubeconfig", str(served(known)), *words])

    return ask


@pytest.fixture
def shown(asked: Asked) -> Callable[..., Any]:
    """Run a command of the view with a stand-in, and read the JSON that it writes."""

    def show(known: StandIn, command: str, *words: str) -> Any:
        return json.loads(asked(known, command, "-o", "json", *words).stdout)

    return show
