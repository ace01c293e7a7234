from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugin.dra.node import DraNode, dra_node


@pytest.fixture
def node(directory: Path) -> Iterator[DraNode]:
    with dra_node(directory) as made:
        yield made
