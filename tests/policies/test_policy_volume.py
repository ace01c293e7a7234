"""Which ConfigMaps are in a volume of policy files, and which files they put there, as kubelets do."""

from typing import Any

import msgspec
import pytest

from policies.policy_volume import ConfigMapSource, ConfigMapVolume, VolumeError, files_of, named, sources_of
from tests.manifests.render import MANIFESTS, render

HELD = {"_default.yaml": b"mode: warn\n", "b.yaml": b""}


def source(**fields: Any) -> ConfigMapSource:
    return msgspec.convert({"name": "a", **fields}, ConfigMapSource)


def names(**volume: Any) -> tuple[str, ...] | None:
    volumes = msgspec.convert([{"name": "tls"}, {"name": "policies", **volume}], tuple[ConfigMapVolume, ...])
    found = sources_of(volumes)
    return None if found is None else tuple(one.name for one in found)


def test_the_sources_of_a_volume_are_in_its_order() -> None:
    sources = [{"configMap": {"name": "b"}}, {"configMap": {"name": "a"}}]
    assert names(projected={"sources": sources}) == ("b", "a")


def test_a_volume_may_be_one_config_map() -> None:
    assert names(configMap={"name": "a"}) == ("a",)


@pytest.mark.parametrize(
    "volume",
    [
        {},
        {"emptyDir": {}},
        {"projected": {"sources": []}},
        {"projected": {"sources": [{"configMap": {"name": "a"}}, {"secret": {"name": "b"}}]}},
    ],
)
def test_of_anything_else_nobody_knows_the_files(volume: dict[str, Any]) -> None:
    assert names(**volume) is None


def test_the_manifests_have_such_a_volume_in_all_that_read_policies() -> None:
    pods = [one["spec"]["template"]["spec"] for one in render(MANIFESTS) if "template" in one.get("spec", {})]
    found = [sources_of(msgspec.convert(one.get("volumes", []), tuple[ConfigMapVolume, ...])) for one in pods]
    assert {named(one) for one in found if one} == {"ConfigMap gpu-share/gpu-share-policies and gpu-share-cluster"}


def test_a_config_map_as_a_whole_gives_each_key_as_a_file() -> None:
    assert files_of(source(), HELD) == HELD


def test_items_are_the_keys_that_are_taken_and_how_their_files_are_called() -> None:
    items = [{"key": "b.yaml", "path": "./c.yaml"}, {"key": "_default.yaml", "path": "kept/_default.yaml"}]
    assert files_of(source(items=items), HELD) == {"c.yaml": b""}


@pytest.mark.parametrize(
    ("items", "held", "why"),
    [
        ([], None, "there is no ConfigMap gpu-share/a"),
        ([{"key": "x", "path": "y"}], HELD, "ConfigMap gpu-share/a has no key x, which the volume policies takes"),
    ],
)
def test_what_is_missing_is_told_unless_it_is_optional(items: Any, held: dict[str, bytes] | None, why: str) -> None:
    with pytest.raises(VolumeError, match=why):
        files_of(source(items=items), held)
    assert files_of(source(items=items, optional=True), held) == {}


@pytest.mark.parametrize(
    ("sources", "said"), [("a", "a"), ("ab", "a and b"), ("abc", "a, b and c"), ("aba", "a and b")]
)
def test_config_maps_are_named_in_their_order_and_once(sources: str, said: str) -> None:
    assert named([source(name=one) for one in sources]) == f"ConfigMap gpu-share/{said}"
