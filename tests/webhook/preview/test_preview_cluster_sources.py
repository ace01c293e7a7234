"""`preview --cluster` reads the webhook's volume as the kubelet fills it, whatever ConfigMaps it is made of."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policies.reading.directory import MOST_FILES
from policies.reading.store import PolicyStore
from tests.webhook.commands import POD, preview
from tests.webhook.preview.test_preview_cluster_file import CLUSTER, POLICIES, shipped_deployment
from tests.webhook.volume import Volume

Answering = Callable[[dict[str, object]], None]
EMPTY = {"kind": "ConfigMap", "metadata": {"name": "team-policies"}}
DISABLED = {"data": {"_default.yaml": "enabled: false\n", "other.yaml": "mode: x\n"}}
NAMED = "Policies: ConfigMap gpu-share/gpu-share-policies, gpu-share-cluster and team-policies of the cluster, context"


def deployment(volume: dict[str, Any]) -> dict[str, Any]:
    """The webhook's Deployment with another volume of policies."""
    made, _ = shipped_deployment()
    made["spec"]["template"]["spec"]["volumes"] = [{"name": "policies", **volume}]
    return made


def with_third(**source: Any) -> dict[str, object]:
    """What kubectl gives of a webhook that has a third ConfigMap."""
    names = ("gpu-share-policies", "gpu-share-cluster", "team-policies")
    sources: list[dict[str, Any]] = [{"configMap": {"name": name}} for name in names]
    sources[2]["configMap"] |= source
    return {
        "deployment": deployment({"projected": {"sources": sources}}),
        "gpu-share-policies": POLICIES,
        "gpu-share-cluster": CLUSTER,
    }


def test_of_a_config_map_with_items_those_files_count_alone(answering: Answering) -> None:
    items = [{"key": "_default.yaml", "path": "_default.yaml"}]
    answering({**with_third(items=items), "team-policies": DISABLED})
    first, *rest = preview(POD, "--cluster", code=1).stdout.splitlines()
    assert first.startswith(NAMED)
    assert "denied, SharingDisabled" in rest[0]


def test_an_optional_config_map_that_is_missing_changes_nothing(answering: Answering) -> None:
    answering(with_third(optional=True))
    assert "at most 0.1 is allowed" in preview(POD, "--cluster", code=1).stdout


@pytest.mark.parametrize("optional", [False, True])
def test_a_config_map_without_files_changes_nothing(answering: Answering, *, optional: bool) -> None:
    answering({**with_third(optional=optional), "team-policies": EMPTY})
    made = preview(POD, "--cluster", code=1)
    assert made.stdout.startswith(NAMED)
    assert ("at most 0.1 is allowed" in made.stdout, made.stderr) == (True, "")


def test_where_all_config_maps_are_without_files_the_built_in_defaults_decide(answering: Answering) -> None:
    answering({**with_third(), "gpu-share-policies": EMPTY, "gpu-share-cluster": EMPTY, "team-policies": EMPTY})
    made = preview(POD, "--cluster")
    assert "Pod default/web: granted" in made.stdout
    maps = "ConfigMap gpu-share/gpu-share-policies, gpu-share-cluster and team-policies"
    assert made.stderr == f"gpu-share: warning: no policy file is in {maps}: the built-in defaults decide\n"


@pytest.mark.parametrize("answer", [{}, {"kind": "Status"}, {"kind": "ConfigMap", "data": []}, []])
def test_what_is_no_config_map_is_none_without_files(answering: Answering, answer: object) -> None:
    answering({**with_third(), "team-policies": answer})
    told = preview(POD, "--cluster", code=2).stderr
    assert "ConfigMap gpu-share/team-policies holds no policy files" in told


def test_a_key_that_is_missing_is_told(answering: Answering) -> None:
    items = [{"key": "mine", "path": "_default.yaml"}]
    answering({**with_third(items=items), "team-policies": DISABLED})
    told = preview(POD, "--cluster", code=2).stderr
    assert "ConfigMap gpu-share/team-policies has no key mine, which the volume policies takes from it: compare" in told


def test_the_volume_may_be_a_single_config_map(answering: Answering) -> None:
    answering({"deployment": deployment({"configMap": {"name": "mine"}}), "mine": POLICIES})
    first, *_ = preview(POD, "--cluster", code=1).stdout.splitlines()
    assert first == "Policies: ConfigMap gpu-share/mine of the cluster, context kind-a"


@pytest.mark.parametrize("volume", [{"emptyDir": {}}, {"projected": {"sources": [{"secret": {"name": "a"}}]}}])
def test_of_anything_else_nothing_is_judged(answering: Answering, volume: dict[str, Any]) -> None:
    answering({**with_third(), "deployment": deployment(volume)})
    assert "has no volume policies that is made of ConfigMaps alone" in preview(POD, "--cluster", code=2).stderr


def test_what_is_wrong_in_the_volume_is_told_as_the_webhook_tells_of_it(answering: Answering, tmp_path: Path) -> None:
    data = {**POLICIES["data"], "team": "enabled: false", "other.yaml": "mode: x\n", "other.yaml.txt": "", "README": ""}
    answering({"gpu-share-policies": {"data": data}, "gpu-share-cluster": CLUSTER})
    volume = Volume(tmp_path / "volume", {name: text.encode() for name, text in {**data, **CLUSTER["data"]}.items()})
    told = [
        str(one).replace(str(volume.directory), "ConfigMap gpu-share/gpu-share-policies")
        for one in PolicyStore(volume.directory).troubles
    ]
    assert len(told) == 2
    assert preview(POD, "--cluster", code=1).stderr.splitlines() == [f"gpu-share: warning: {one}" for one in told]


@pytest.mark.parametrize("ending", [".yaml", ""])
def test_more_keys_than_a_webhook_starts_with_are_told(answering: Answering, ending: str) -> None:
    keys = {f"n{number}{ending}": "" for number in range(MOST_FILES)}
    answering({"gpu-share-policies": {"data": keys}, "gpu-share-cluster": CLUSTER})
    told = preview(POD, "--cluster", code=2).stderr
    assert told == (
        "gpu-share: --cluster: ConfigMap gpu-share/gpu-share-policies and gpu-share-cluster: "
        f"expected at most {MOST_FILES} policy files, got {MOST_FILES + 1}: remove those that say nothing\n"
    )
