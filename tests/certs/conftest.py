import pytest

from certs.rotation import State
from tests.certs.rotation_states import EMPTY, NOW, after_pass


@pytest.fixture
def installed() -> State:
    """Return what a first pass leaves at NOW."""
    return after_pass(EMPTY, NOW)[0]
