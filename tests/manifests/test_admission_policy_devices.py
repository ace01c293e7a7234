"""The policies in the API server know the same annotations, resources and capabilities as the rules do."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import contract
from policies.denial import Findings
from policies.environment import reserved
from policies.other_devices import injects_devices, is_other_gpu
from policies.pod import Capabilities, Container, SecurityContext, Slot, Variable
from policies.privileges import check_privileges
from tests.bypass.corpus_devices import ANNOTATIONS, HARMLESS_ANNOTATIONS, RESOURCES
from tests.manifests.admission import BASE, Given, policy, policy_spec, stored
from tests.manifests.granted_pods import one
from tests.manifests.render import Object
from tests.policies.pods import container, mutated, only_container, pod, policies

POLICY, CHANGES = policy(BASE), policy(BASE, "gpu-share-changes")
RUNNING = stored(mutated(pod("0.2")))

WORDS = st.sampled_from(
    [
        "cdi",
        "k8s",
        "io",
        "nri",
        "crio",
        "cpu-x",
        "noderesource",
        "dev",
        "containerd",
        "kubernetes",
        "cri-o",
        "oci",
        "run",
        "resource-policy",
        "memory-policy",
        "katacontainers",
        "org",
        "systemd",
        "property",
        "a",
        "Devices",
        "gpu",
        "GPU",
        "nvidia",
        "com",
        "mig-1g",
        "amd",
        "habana",
        "ai",
        "A100",
        "deviceclass",
        "resource",
        "cuda",
        "devices",
        "gke",
        "scheduling.koordinator.sh/device-allocated",
    ]
)
KEYS = st.lists(st.tuples(WORDS, st.sampled_from([".", ".", ".", "/", ""])), min_size=1, max_size=7).map(
    lambda parts: "".join(word + mark for word, mark in parts)
)
EVERY_KEY = KEYS | st.sampled_from([*ANNOTATIONS, *HARMLESS_ANNOTATIONS, *RESOURCES]) | st.text(max_size=12)


def variable(name: str, of: str) -> Any:
    """What a variable of a policy says where it depends on nothing."""
    (expression,) = (one for found, one in policy(BASE, of).variables.items() if found == name)
    return expression.value(Given())


@pytest.mark.parametrize("of", ["gpu-share", "gpu-share-changes"])
def test_the_annotations_are_those_of_the_contract(of: str) -> None:
    assert variable("deviceAnnotations", of) == [contract.DEVICE_ANNOTATIONS, contract.TUNING_ANNOTATIONS]


def test_resources_and_schedulers_are_those_of_the_contract() -> None:
    assert variable("otherGpus", "gpu-share") == contract.OTHER_GPU_RESOURCES
    text = " ".join(one["expression"] for one in policy_spec(BASE)["validations"])
    assert all(f"'{name}' in variables.annotations" in text for name in contract.OTHER_SHARE_ANNOTATIONS)


def annotated(key: str, value: str = "x") -> Object:
    on = one("one")
    on["metadata"]["annotations"].setdefault(key, value)
    return on


@settings(deadline=None, max_examples=100)
@given(EVERY_KEY)
def test_policy_and_rules_agree_on_every_annotation(key: str) -> None:
    said = any("by which a container runtime" in text for text in POLICY.denials(annotated(key)))
    assert said is injects_devices(key)


@settings(deadline=None, max_examples=100)
@given(EVERY_KEY.filter(lambda key: not key.startswith("gpu-share.dev")))
def test_policy_and_rules_agree_on_every_resource(name: str) -> None:
    on = one("one")
    only_container(on)["resources"]["limits"].setdefault(name, "1")
    said = any("never both" in text for text in POLICY.denials(on))
    ours = name.startswith(contract.IMPLICIT_RESOURCE_PREFIX) and name.endswith(contract.SIZE_CLASS_SUFFIX)
    assert said is (is_other_gpu(name) and not ours)


def added(*names: str) -> Slot:
    security = SecurityContext(capabilities=Capabilities(add=list(names)))
    return Slot("containers", 0, "main", Container("main", security_context=security), True)  # noqa: FBT003 - runs_on


@settings(deadline=None, max_examples=100)
@given(
    st.sampled_from([*contract.ALLOWED_CAPABILITIES, "SYS_ADMIN", "BPF", "ALL", ""]),
    st.sampled_from(["", "CAP_", "cap_", "CAP_CAP_", " ", "X"]),
    st.sampled_from([str.upper, str.lower, str.title]),
    st.sampled_from(["", "\n", " ", "X"]),
)
def test_policies_and_rules_agree_on_every_capability(
    name: str, before: str, spelled: Callable[[str], str], after: str
) -> None:
    written = f"{before}{spelled(name)}{after}"
    on = one("one")
    security = {"capabilities": {"add": [written]}}
    only_container(on)["securityContext"] = security
    found = Findings()
    check_privileges(added(written), found)
    assert (POLICY.denials(on) == []) is (found.denials == [])
    debugged = deepcopy(RUNNING)
    hidden = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    debugged["spec"]["ephemeralContainers"] = [container("d", env=hidden, securityContext=security)]
    assert (CHANGES.denials(debugged, RUNNING) == []) is (found.denials == [])


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.sampled_from([*contract.COMPUTE_CAPABILITIES, "graphics", "all", "", " ", "Compute", "$(A)"]), max_size=4
    ).map(",".join)
    | st.text(" ,comput", max_size=9)
)
def test_policy_and_rules_agree_on_what_of_the_driver_a_container_gets(value: str) -> None:
    on = one("one")
    only_container(on)["env"] = [{"name": contract.DRIVER_CAPABILITIES, "value": value}]
    env = [Variable(contract.DRIVER_CAPABILITIES, value)]
    slot = Slot("containers", 0, "main", Container("main", env=env), True)  # noqa: FBT003 - runs_on
    removed = reserved(slot, policies().default, Findings(), shares=contract.MPS)
    assert (POLICY.denials(on) == []) is (removed == ())


@pytest.mark.parametrize("by", ["strategy: time-slicing", "share: {whole: gpus}"])
def test_graphics_are_free_where_there_is_no_mps(by: str) -> None:
    drawing = container(env=[{"name": contract.DRIVER_CAPABILITIES, "value": "all"}])
    assert POLICY.denials(stored(mutated(pod("1", drawing), policies(by)))) == []


@pytest.mark.parametrize("key", [*ANNOTATIONS, *contract.OTHER_SHARE_ANNOTATIONS])
def test_no_update_adds_or_changes_an_annotation_that_injects_devices(key: str) -> None:
    new = deepcopy(RUNNING)
    new["metadata"]["annotations"][key] = "a"
    (said,) = CHANGES.denials(new, RUNNING)
    assert said.startswith("An annotation is added to a pod with a GPU share, or changed, by which a container runtime")
    older, changed = deepcopy(new), deepcopy(new)
    assert CHANGES.denials(new, older) == []  # it was there before the policy was
    assert CHANGES.denials(RUNNING, older) == []
    changed["metadata"]["annotations"][key] = "b"
    assert CHANGES.denials(changed, older) != []


@pytest.mark.parametrize("key", HARMLESS_ANNOTATIONS)
def test_an_update_may_add_other_annotations(key: str) -> None:
    new = deepcopy(RUNNING)
    new["metadata"]["annotations"][key] = "a"
    assert CHANGES.denials(new, RUNNING) == []


@pytest.mark.parametrize("path", ["/dev/shm/x", "/tmp/nvidia-mps/a", "/x/../y"])
def test_an_ephemeral_container_leaves_no_message_where_shares_meet_mps(path: str) -> None:
    new = deepcopy(RUNNING)
    hidden = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    new["spec"]["ephemeralContainers"] = [container("d", env=hidden, terminationMessagePath=path)]
    (said,) = CHANGES.denials(new, RUNNING)
    assert said.startswith("An ephemeral container of a pod with a GPU share has its terminationMessagePath")
