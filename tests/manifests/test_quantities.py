import pytest

from tests.manifests.quantities import kept

# Pods with these limits, as Kubernetes 1.36.2 gives them back.
KEPT = {
    "2": "2",
    "1500": "1500",
    "1000": "1k",
    "10000": "10k",
    "007": "007",
    "+2": "+2",
    "2.": "2.",
    "2.0": "2",
    "2000m": "2",
    "0.002k": "2",
    "2k": "2k",
    "1.5k": "1500",
    "1.500k": "1.500k",
    "2e0": "2e0",
    "2E0": "2E0",
    "2e00": "2e00",
    "2e3": "2e3",
    "2000e0": "2e3",
    "20e-1": "2",
    "1Ki": "1Ki",
    "+1Ki": "+1Ki",
    "+8Ki": "8Ki",
    "01Ki": "01Ki",
    "8Ki": "8Ki",
    "8192Ki": "8Mi",
    "1.5Ki": "1536",
    "0e0": "0",
    "+0": "0",
    "0Ki": "0",
    "0.0": "0",
}


@pytest.mark.parametrize("written", KEPT)
def test_a_quantity_is_kept_as_the_api_server_keeps_it(written: str) -> None:
    assert kept(written) == KEPT[written]
