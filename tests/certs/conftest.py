import pytest

from certs.rotation import State
from tests.certs.rotation_states import installed


@pytest.fixture
def good() -> State:
    """An installation on which nothing is due."""
    return installed()
