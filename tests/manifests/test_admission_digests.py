"""What `gpu-share doctor` knows of the webhooks and admission policies of the manifests: by what they judge."""

import json
from pathlib import Path

import pytest

from console.doctor.shipped import SHIPPED
from policies.cluster import Cluster
from policies.reading.store import load_cluster
from tests.manifests.admission_digests import digests
from tests.manifests.installations import each_installation
from tests.manifests.render import MANIFESTS, ROOT, Object, render

CLAIMS = "gpu-share-claims"


def cluster_of(directory: Path) -> Cluster:
    own = directory / "_cluster.yaml"
    return load_cluster(directory if own.is_file() else ROOT / "policies" / "files")


def replaced(objects: list[Object], texts: dict[str, str]) -> list[Object]:
    """Write other texts in place of some, as is told in docs/install.md."""
    written = json.dumps(objects)
    for text, other in texts.items():
        assert text in written
        written = written.replace(text, other)
    made: list[Object] = json.loads(written)
    return made


@each_installation
def test_each_installation_judges_by_what_is_known_whatever_its_resources_are_called(directory: Path) -> None:
    found = digests(render(directory), cluster_of(directory))
    assert len(found) >= 5
    assert found.items() <= SHIPPED.items()


def test_settings_that_stand_in_a_second_place_are_no_difference() -> None:
    objects = replaced(
        [*render(MANIFESTS), *render(MANIFESTS / "components" / "lockdown")],
        {"gpu-share.dev/gpu'": "a.b/c'", "'/tmp/nvidia-mps'": "'/x'", "/+nvidia-mps'": "/+else'"},
    )
    cluster = load_cluster(ROOT / "policies" / "files")
    other = {**cluster.resource_names, "whole": "a.b/c"}
    found = digests(objects, Cluster(resource_names=other, mps=type(cluster.mps)(pipe_directory="/x")))
    assert found.items() <= SHIPPED.items()
    assert not digests(objects, cluster).items() <= SHIPPED.items()


def test_another_scheduler_that_may_make_and_change_claims_is_no_difference() -> None:
    one, other = "'system:kube-scheduler'", "'system:serviceaccount:kueue:scheduler'"
    objects = replaced(render(MANIFESTS / "overlays" / "dra"), {one: f"{one}, {other}"})
    found = digests(objects, Cluster())
    (policy,) = (spec for spec in objects if spec["metadata"]["name"] == CLAIMS and "validations" in spec["spec"])
    makes, changes, _ = (one["expression"] for one in policy["spec"]["validations"])
    assert all(f"username in [{one}, {other}" in text for text in (makes, changes))
    assert found.items() <= SHIPPED.items()


@pytest.mark.parametrize("text", ["system:nodes", "NVIDIA_VISIBLE_DEVICES", "object.spec"])
def test_any_other_change_is_one(text: str) -> None:
    found = digests(replaced(render(MANIFESTS), {text: "x"}), Cluster())
    assert found.keys() <= SHIPPED.keys()
    assert not found.items() <= SHIPPED.items()
