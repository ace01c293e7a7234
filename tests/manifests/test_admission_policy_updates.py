"""Which updates of a pod with a share the policy in the API server denies."""

from collections.abc import Callable
from copy import deepcopy

import pytest

from policies import contract
from tests.manifests.admission import BASE, policy, policy_spec, stored
from tests.manifests.render import Object
from tests.policies.pods import container, mutated, pod

POLICY = policy(BASE, "gpu-share-changes")
RUNNING = stored(mutated(pod("0.2", container(), container("b"), annotations={"container.gpu-share.dev/b": "0.1"})))
FIXED = "The GPU share of an existing pod cannot be changed"


def changed(change: Callable[[Object], object], of: Object = RUNNING) -> list[str]:
    new = deepcopy(of)
    change(new)
    return POLICY.denials(new, of)


def test_it_validates_updates_of_pods_by_every_way_that_there_is() -> None:
    (rule,) = policy_spec(BASE, "gpu-share-changes")["matchConstraints"]["resourceRules"]
    assert rule["operations"] == ["UPDATE"]
    assert rule["resources"] == ["pods", "pods/ephemeralcontainers", "pods/resize", "pods/status"]


@pytest.mark.parametrize(
    "change",
    [
        lambda on: on["metadata"].update(finalizers=["a"]),
        lambda on: on["metadata"]["annotations"].update(note="a"),
        lambda on: on["metadata"]["labels"].update(app="a"),
        lambda on: on["spec"]["containers"][0].update(image="other"),
    ],
)
def test_everything_else_may_change(change: Callable[[Object], object]) -> None:
    assert POLICY.matches(RUNNING, RUNNING)
    assert changed(change) == []


@pytest.mark.parametrize(
    "key", [contract.SHARE_ANNOTATION, contract.GRANT_ANNOTATION, f"{contract.CONTAINER_ANNOTATION_PREFIX}b"]
)
def test_request_and_grant_cannot_be_changed(key: str) -> None:
    assert changed(lambda on: on["metadata"]["annotations"].update({key: "other"}))[0].startswith(FIXED)
    assert changed(lambda on: on["metadata"]["annotations"].pop(key))[0].startswith(FIXED)


@pytest.mark.parametrize("key", [contract.SHARE_ANNOTATION_ALIAS, f"{contract.CONTAINER_ANNOTATION_PREFIX}main"])
def test_no_request_can_be_added(key: str) -> None:
    (said,) = changed(lambda on: on["metadata"]["annotations"].update({key: "0.9"}))
    assert said.startswith(FIXED)


@pytest.mark.parametrize(
    "key", [contract.SHARE_ANNOTATION, contract.GRANT_ANNOTATION, f"{contract.CONTAINER_ANNOTATION_PREFIX}main"]
)
def test_a_pod_without_a_share_cannot_get_one_later(key: str) -> None:
    plain = stored({"metadata": {}, "spec": {"containers": [container()]}})
    (said,) = changed(lambda on: on["metadata"].update(annotations={key: "0.2"}), plain)
    assert said.startswith(FIXED)


def test_the_annotations_cannot_be_removed_at_once() -> None:
    (said,) = changed(lambda on: on["metadata"].pop("annotations"))
    assert said.startswith(FIXED)


@pytest.mark.parametrize(
    "change",
    [
        lambda on: on["metadata"].pop("labels"),
        lambda on: on["metadata"].update(labels={"app": "a"}),
        lambda on: on["metadata"].update(labels={contract.SHARED_LABEL: "false"}),
    ],
)
def test_the_label_cannot_be_changed(change: Callable[[Object], object]) -> None:
    (said,) = changed(change)
    assert said.startswith("The label gpu-share.dev/shared, which marks pods with a GPU share, cannot be changed")


def test_a_pod_without_a_share_is_not_validated() -> None:
    plain = stored(pod(None))
    assert not POLICY.matches(plain, plain)
    privileged = container("debugger", securityContext={"privileged": True})
    assert changed(lambda on: on["spec"].update(ephemeralContainers=[privileged]), plain) == []


def test_a_pod_from_before_the_installation_can_still_be_updated() -> None:
    # It asks for a share, may have the resource of the AWS plugin, and has no grant.
    old = stored(pod("0.2"))
    assert changed(lambda on: on["metadata"].update(finalizers=[]), old) == []


VOID = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}


def debugged(env: tuple[Object, ...] = (), of: Object = RUNNING, **fields: object) -> list[str]:
    """What is said of an ephemeral container as the webhook leaves it, with *void* and some variables more."""
    return added(of, env=[*env, VOID], **fields)


def added(of: Object = RUNNING, **fields: object) -> list[str]:
    return changed(lambda on: on["spec"].update(ephemeralContainers=[container("debugger", **fields)]), of)


@pytest.mark.parametrize(
    "variable",
    [*sorted(contract.RESERVED_VARIABLES), *(f"{prefix}X" for prefix in contract.RESERVED_VARIABLE_PREFIXES)],
)
def test_an_ephemeral_container_may_not_set_a_reserved_variable(variable: str) -> None:
    (said,) = debugged(env=({"name": variable, "value": "all"},))
    assert said.startswith("An ephemeral container of a pod with a GPU share sets a reserved variable")


@pytest.mark.parametrize(
    "security", [{"privileged": True}, {"capabilities": {"add": ["SYS_ADMIN"]}}, {"capabilities": {"add": ["CAP_ALL"]}}]
)
def test_an_ephemeral_container_may_not_be_privileged(security: Object) -> None:
    (said,) = debugged(securityContext=security)
    assert said.startswith("An ephemeral container of a pod with a GPU share may not be privileged")


def test_an_ephemeral_container_may_set_visible_devices_only_to_void() -> None:
    (said,) = debugged(env=({"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"},))
    assert said.startswith("An ephemeral container of a pod with a GPU share sets a reserved variable")


def test_an_ordinary_ephemeral_container_is_admitted() -> None:
    assert debugged() == []
    assert debugged(env=({"name": "A", "value": "b"},)) == []
    assert debugged(securityContext={"capabilities": {"add": ["SYS_PTRACE"]}}) == []


@pytest.mark.parametrize(
    "fields",
    [{}, {"env": []}, {"env": [{"name": "A", "value": "void"}]}, {"env": [{"name": "NVIDIA_VISIBLE_DEVICES"}]}],
)
def test_an_ephemeral_container_that_the_webhook_did_not_see_is_denied_and_told_what_to_do(fields: Object) -> None:
    said = added(**fields)
    assert any("add --env=NVIDIA_VISIBLE_DEVICES=void to kubectl debug" in one for one in said)


def test_an_ephemeral_container_is_free_in_a_pod_that_only_asks_for_a_share() -> None:
    assert added(of=stored(pod("0.2"))) == []


@pytest.mark.parametrize("strip", ["labels", "annotations"])
def test_grant_and_label_each_mark_a_pod_with_a_share(strip: str) -> None:
    one = deepcopy(RUNNING)
    del one["metadata"][strip]
    assert added(of=one)


def test_ephemeral_containers_that_were_there_before_do_not_hinder_a_change() -> None:
    # They are from before the upgrade, and can be neither changed nor removed.
    old = deepcopy(RUNNING)
    old["spec"]["ephemeralContainers"] = [container("before", env=[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}])]
    assert changed(lambda on: on["metadata"].update(finalizers=["a"]), old) == []
    assert changed(lambda on: on["spec"]["ephemeralContainers"].append(container("new", env=[VOID])), old) == []
    assert changed(lambda on: on["spec"]["ephemeralContainers"].append(container("new")), old) != []


def test_a_pod_that_an_earlier_version_let_write_to_the_pipes_can_be_changed() -> None:
    old = deepcopy(RUNNING)
    del old["spec"]["containers"][0]["volumeMounts"][0]["readOnly"]
    assert changed(lambda on: on["metadata"]["labels"].update(a="b"), old) == []
    assert changed(lambda on: on["spec"].update(ephemeralContainers=[container("new", env=[VOID])]), old) == []


def mounting(path: str) -> list[str]:
    one = deepcopy(RUNNING)
    one["spec"]["volumes"] = [{"name": "a", "hostPath": {"path": path}}, {"name": "b", "emptyDir": {}}]
    mounts = [{"name": name, "mountPath": f"/{name}", "readOnly": name == "a"} for name in ("b", "a")]
    return debugged(of=one, volumeMounts=mounts)


@pytest.mark.parametrize("path", ["/tmp/nvidia-mps", "/tmp//nvidia-mps/", "/tmp/nvidia-mps/GPU-1"])
def test_an_ephemeral_container_may_not_mount_the_pipes(path: str) -> None:
    (said,) = mounting(path)
    assert said.startswith("An ephemeral container of a pod with a GPU share may not mount the volume of the MPS pipes")


def test_an_ephemeral_container_may_mount_other_volumes_of_its_pod() -> None:
    assert mounting("/data") == []
    assert mounting("/tmp/nvidia-mps-other") == []


def test_both_policies_know_the_same_pipe_directory() -> None:
    pipes = [
        one["expression"]
        for name in ("gpu-share", "gpu-share-changes")
        for one in policy_spec(BASE, name)["variables"]
        if one["name"] == "pipes"
    ]
    assert len(pipes) == 2
    assert pipes[0] == pipes[1]
