"""The policies in the API server know the node's paths that a namespace lists from its annotation."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.contract import HOST_PATHS_ANNOTATION
from policies.grant import Grant
from policies.host_paths import NEVER_LISTED
from policies.policy import Policy
from tests.manifests.admission import BASE, policy, policy_spec, stored
from tests.manifests.render import Object
from tests.policies.pods import container, decided, mutated, pod, policies

POLICY = policy(BASE)
CHANGES = policy(BASE, "gpu-share-changes")
BY = policies("hostPaths: [{path: /data/models}, {path: /scratch, writable: true}]")


def namespace(listed: str | None = "/data/models, /scratch:rw") -> Object:
    return {"metadata": {"annotations": {} if listed is None else {HOST_PATHS_ANNOTATION: listed}}}


def mounting(path: str, mount: Object | None = None, **host: Any) -> Object:
    mounts = [{"name": "data", "mountPath": "/d", **({"readOnly": True} if mount is None else mount)}]
    return pod("0.2", container(volumeMounts=mounts), volumes=[{"name": "data", "hostPath": {"path": path, **host}}])


def granted_with(on: Object) -> Object:
    """What another webhook makes of a pod that ours has granted: it has the volumes and mounts of *on*."""
    made = mutated(pod("0.2"), BY)
    made["spec"]["volumes"] = [*made["spec"]["volumes"], *on["spec"]["volumes"]]
    made["spec"]["containers"][0]["volumeMounts"] += on["spec"]["containers"][0]["volumeMounts"]
    return stored(made)


PARTS = st.lists(
    st.sampled_from(["data", "models", "scratch", "x", "dev", "", ".", "..", ".x", "etc", "tmp", "run"]), max_size=5
)
PATHS = st.builds(
    lambda start, parts: start + "/".join(parts),
    st.sampled_from(["/", "", "/data/models/", "/scratch/", "/data/models"]),
    PARTS,
)
MOUNTS = st.fixed_dictionaries(
    {},
    optional={
        "readOnly": st.sampled_from([True, True, False]),
        "mountPropagation": st.sampled_from(["None", "HostToContainer"]),
        "subPath": st.just("a"),
    },
)
TYPES = st.sampled_from(
    [{}, {"type": ""}, *({"type": f"{one}"} for one in ("Directory", "File", "DirectoryOrCreate", "Socket"))]
)


@settings(deadline=None, max_examples=200)
@given(PATHS, MOUNTS, TYPES)
def test_webhook_and_policy_agree_on_the_nodes_paths(path: str, mount: Object, host: Object) -> None:
    on = mounting(path, mount, **host)
    admitted = isinstance(decided(on, BY), Grant)
    assert (POLICY.denials(granted_with(on), namespace=namespace()) == []) == admitted
    if admitted:
        assert POLICY.denials(stored(mutated(on, BY)), namespace=namespace()) == []


@pytest.mark.parametrize(
    "listed",
    [
        None,
        "",
        ",",
        "/",
        "/data",
        "/data/models:rw",
        "/data/models2",
        "data/models",
        "/data/model",
        "/x,/y",
        "/data/models:ro",
    ],
)
def test_without_its_path_in_the_annotation_a_pod_is_denied(listed: str | None) -> None:
    on = mounting("/data/models/a")
    denials = POLICY.denials(granted_with(on), namespace=namespace(listed))
    assert (denials == []) == (listed == "/data")
    if denials:
        assert denials[0].startswith("A hostPath volume of the pod is no path that the namespace lists")


def test_a_namespace_without_annotations_lists_nothing() -> None:
    assert POLICY.denials(granted_with(mounting("/data/models")), namespace={"metadata": {}}) != []
    assert POLICY.denials(stored(mutated(pod("0.2"))), namespace={"metadata": {}}) == []


@pytest.mark.parametrize("path", [*NEVER_LISTED, "/var", "/etc", "/tmp", "/", "/dev/nvidia0", "/tmp/nvidia-mps/GPU-0"])
def test_what_no_policy_can_list_is_denied_whatever_the_annotation_says(path: str) -> None:
    listed = namespace(f"{path},/,/dev,/var,/etc,/tmp")
    assert POLICY.denials(granted_with(mounting(path)), namespace=listed) != []


def test_the_policy_never_admits_what_no_policy_can_list() -> None:
    (expression,) = (one["expression"] for one in policy_spec(BASE)["variables"] if one["name"] == "never")
    assert all(f"'{path}'" in expression for path in NEVER_LISTED)


def test_the_pipes_of_the_share_need_no_list() -> None:
    assert POLICY.denials(stored(mutated(pod("0.2"))), namespace=namespace(None)) == []


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(["/tmp/nvidia-mps", "/tmp//nvidia-mps/"]), MOUNTS)
def test_webhook_and_policy_let_no_container_write_to_the_pipes(path: str, mount: Object) -> None:
    on = mounting(path, mount)
    listed = namespace("/tmp/nvidia-mps:rw")
    propagates = mount.get("mountPropagation") == "HostToContainer"
    is_closed = mount.get("readOnly") is True and not propagates
    assert (POLICY.denials(granted_with(on), namespace=listed) == []) == is_closed
    if propagates:
        assert not isinstance(decided(on, BY), Grant)
        return
    made = mutated(on, BY)
    assert POLICY.denials(stored(made), namespace=listed) == []
    assert mutated(made, BY) == made


@pytest.mark.parametrize("kind", ["flexVolume", "gitRepo"])
def test_volumes_that_run_a_program_of_the_node_are_denied(kind: str) -> None:
    volume = {"name": "data", kind: {"driver": "a"}}
    assert not isinstance(decided(pod("0.2", volumes=[volume])), Grant)
    made = stored(mutated(pod("0.2"), BY))
    made["spec"]["volumes"].append(volume)
    (said,) = POLICY.denials(made, namespace=namespace())
    assert kind in said


@pytest.mark.parametrize(
    ("path", "mount", "passes"),
    [
        ("/data/models", {"readOnly": True}, True),
        ("/data/models", {}, False),
        ("/data/models", {"readOnly": False}, False),
        ("/data/models", {"readOnly": True, "mountPropagation": "HostToContainer"}, False),
        ("/scratch", {}, True),
        ("/scratch/", {}, True),
        ("/other", {}, False),
    ],
)
def test_an_ephemeral_container_writes_to_no_read_only_path(path: str, mount: Object, *, passes: bool) -> None:
    before = granted_with(mounting(path))
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    debug = container("debug", env=env, volumeMounts=[{"name": "data", "mountPath": "/d", **mount}])
    after = before | {"spec": before["spec"] | {"ephemeralContainers": [debug]}}
    assert (CHANGES.denials(after, before, namespace=namespace()) == []) is passes


def test_the_policy_of_a_namespace_has_the_field() -> None:
    assert Policy().host_paths == ()
