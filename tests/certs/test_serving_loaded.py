"""Serving Secrets that clients would accept, but the webhook may be unable to load."""

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from policies.contract import SERVING_SECRET
from tests.certs.manual_changes import GARBAGE
from tests.certs.rotation_stages import cluster_at, installed_and_settled
from tests.certs.simulated_cluster import SimulatedCluster
from webhook.tls import CertificateError, ServingCertificate

Form = Callable[[bytes], bytes]

BAD_FORMS: dict[str, Form] = {
    "is indented": lambda pem: b"".join(b"  " + line for line in pem.splitlines(keepends=True)),
    "is on one line": lambda pem: pem.replace(b"\n", b" "),
    "is in quotes": lambda pem: b'"' + pem.rstrip() + b'"\n',
    "has its lines ended by carriage returns": lambda pem: pem.replace(b"\n", b"\r"),
}
BAD_CHAINS: dict[str, Form] = {
    "has a truncated second block": lambda pem: pem + pem[:200],
    "has an empty second block": lambda pem: pem + b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
    "has garbage before it": lambda pem: GARBAGE + pem,
    "has garbage after it": lambda pem: pem + GARBAGE,
}
GOOD_FORMS: dict[str, Form] = {
    "has lines of Windows": lambda pem: pem.replace(b"\n", b"\r\n"),
    "has comments": lambda pem: b"# ours\n" + pem + b"the end\n",
    "has no end of line at its end": bytes.rstrip,
}
BAD = {
    **{f"tls.crt {name}": ("tls.crt", form) for name, form in (BAD_FORMS | BAD_CHAINS).items()},
    **{f"tls.key {name}": ("tls.key", form) for name, form in BAD_FORMS.items()},
}
GOOD = {f"{entry} {name}": (entry, form) for entry in ("tls.crt", "tls.key") for name, form in GOOD_FORMS.items()}


@pytest.fixture
def cluster() -> SimulatedCluster:
    return cluster_at(installed_and_settled)


def rewrite(cluster: SimulatedCluster, entry: str, form: Form) -> dict[str, bytes]:
    """Write the serving Secret with *entry* in another form, and return what it holds then."""
    data = cluster.secret(SERVING_SECRET)
    data[entry] = form(data[entry])
    cluster.change_manually(lambda cluster: cluster.put_secret(SERVING_SECRET, data))
    return data


def load(data: dict[str, bytes], directory: Path) -> ServingCertificate:
    for name, content in data.items():
        (directory / name).write_bytes(content)
    return ServingCertificate(directory / "tls.crt", directory / "tls.key")


@pytest.mark.parametrize("form", BAD)
def test_the_next_pass_replaces_a_pair_that_the_webhook_cannot_load(
    cluster: SimulatedCluster, form: str, tmp_path: Path
) -> None:
    data = rewrite(cluster, *BAD[form])
    with pytest.raises(CertificateError):
        load(data, tmp_path)
    cluster.run()
    repaired = cluster.secret(SERVING_SECRET)
    assert repaired["tls.key"] != data["tls.key"]
    load(repaired, tmp_path)


@pytest.mark.parametrize("form", GOOD)
def test_a_pair_that_the_webhook_can_load_is_left_alone(cluster: SimulatedCluster, form: str, tmp_path: Path) -> None:
    data = rewrite(cluster, *GOOD[form])
    load(data, tmp_path)
    cluster.run()
    assert cluster.secret(SERVING_SECRET) == data


def test_a_pair_that_cannot_be_loaded_for_want_of_descriptors_is_left_alone(cluster: SimulatedCluster) -> None:
    data = rewrite(cluster, "tls.crt", lambda pem: b"# not loaded by any pass before\n" + pem)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(next_one := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (next_one, limits[1]))
    try:
        cluster.run()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert cluster.secret(SERVING_SECRET) == data
