"""Variables of a ConfigMap or Secret as a whole: admitted where they lift no limit, and never by a reserved prefix."""

from typing import Any

import msgspec
import pytest

from policies import contract
from policies.ephemeral import decide_on_added
from policies.grant import Denied
from policies.pod import Pod
from tests.manifests.admission import BASE, policy, stored
from tests.policies.pods import GPU, container, denied, granted, limited, mutated, pod, policies

SETTINGS = {"configMapRef": {"name": "settings"}}
FROM_ALL = container(envFrom=[SETTINGS])
BY_CDI = "handover: [cdi]"
MANY = "strategy: time-slicing\nshare: {maximum: '8', podMaximum: '8'}"
RESERVED = (*sorted(contract.RESERVED_VARIABLES), *contract.RESERVED_VARIABLE_PREFIXES)
POLICY = policy(BASE)
CHANGES = policy(BASE, "gpu-share-changes")


@pytest.mark.parametrize("ways", ["[envvar]", "[devices]", "[cdi, envvar]", "[cdi, devices]", None])
def test_it_is_denied_where_limits_are_variables(ways: str | None) -> None:
    by = policies(cluster="" if ways is None else f"handover: {ways}")
    deny = denied(pod("0.2", FROM_ALL), by)
    assert deny.code == "ReservedEnvironment"
    assert "which could lift limits" in deny.message


def test_by_cdi_alone_it_is_admitted_and_needs_no_warning() -> None:
    assert granted(pod("0.2", FROM_ALL), policies(cluster=BY_CDI)).warnings == ()
    assert granted(pod("1", FROM_ALL), policies(cluster=BY_CDI)).warnings == ()
    assert granted(pod("1", FROM_ALL), policies(MANY, BY_CDI)).warnings == ()


@pytest.mark.parametrize("rules", [MANY, "share: {maximum: '8', podMaximum: '8', whole: gpus}"])
def test_several_gpus_are_no_cdi_device_so_it_is_denied_for_them(rules: str) -> None:
    assert denied(pod("2", FROM_ALL), policies(rules, BY_CDI)).code == "ReservedEnvironment"
    granted(pod("2", FROM_ALL), policies(f"{rules}\nenvironment: {{envFrom: allow}}", BY_CDI))


def test_a_whole_gpu_by_limit_is_a_cdi_device() -> None:
    on = pod(None, limited("main", 1, GPU, envFrom=[SETTINGS]))
    granted(on, policies("share: {whole: gpus}", BY_CDI))


def test_by_dra_it_is_admitted_whatever_the_device_plugin_does() -> None:
    granted(pod("0.2", FROM_ALL), policies("allocation: dra"))


@pytest.mark.parametrize("ways", ["[envvar]", "[cdi]"])
def test_what_the_policy_says_holds(ways: str) -> None:
    cluster = f"handover: {ways}"
    warnings = granted(pod("0.2", FROM_ALL), policies("environment: {envFrom: allow}", cluster)).warnings
    assert [("envFrom is not inspected" in one) for one in warnings] == ([True] if ways == "[envvar]" else [])
    deny = denied(pod("0.2", FROM_ALL), policies("environment: {envFrom: deny}", cluster))
    assert "(_default.yaml:1)" in deny.message


def test_a_container_without_a_share_may_have_it() -> None:
    granted(pod("0.2", container(), container("b", envFrom=[SETTINGS])))


def test_no_variables_from_elsewhere_are_no_matter() -> None:
    assert granted(pod("0.2", container(envFrom=[]))).warnings == ()


def prefixed(prefix: str) -> dict[str, Any]:
    return {**SETTINGS, "prefix": prefix}


EVERY_PREFIX = sorted({name[:length] for name in RESERVED for length in range(1, len(name) + 1)})
AIMED = [one for one in EVERY_PREFIX if one not in {"NVIDIA", "NVIDIA_", "CUDA", "CUDA_", "GPU", "GPU_"}]
OTHERS = ["", "NVIDIA", "NVIDIA_", "CUDA", "CUDA_", "GPU", "GPU_", "APP_", "NVIDIA_API_", "CUDA_H", "nvidia_visible_"]
EXTENDED = [f"{name}X" for name in RESERVED]
PERMITTED = policies("environment: {envFrom: allow}", BY_CDI)


def in_group(group: str, source: dict[str, Any]) -> dict[str, Any]:
    if group == "with a share":
        return pod("0.2", container(envFrom=[SETTINGS, source]))
    other = container("b", envFrom=[source])
    return pod("0.2", container(), other) if group == "beside" else pod("0.2", initContainers=[other])


@pytest.mark.parametrize("group", ["with a share", "beside", "init"])
@pytest.mark.parametrize("prefix", [*AIMED, *EXTENDED])
def test_a_prefix_of_reserved_variables_is_denied_whatever_the_policy_says(prefix: str, group: str) -> None:
    on = in_group(group, prefixed(prefix))
    deny = denied(on, PERMITTED)
    assert deny.code == "ReservedEnvironment"
    assert f'the prefix "{prefix}"' in deny.message


@pytest.mark.parametrize("prefix", [*EVERY_PREFIX, *EXTENDED, *OTHERS])
def test_webhook_and_policy_agree_on_prefixes(prefix: str) -> None:
    made = mutated(pod("0.2"), PERMITTED)
    made["spec"]["containers"][0]["envFrom"] = [prefixed(prefix)]
    denials = POLICY.denials(stored(made))
    assert (denials != []) == (prefix not in OTHERS)
    assert all("prefix that makes reserved variables" in one for one in denials)
    if prefix in OTHERS:
        granted(in_group("with a share", prefixed(prefix)), PERMITTED)


@pytest.mark.parametrize("prefix", ["NVIDIA_VISIBLE_", "CUDA_MPS_", "NVIDIA_"])
def test_an_ephemeral_container_has_no_reserved_prefix_either(prefix: str) -> None:
    before = mutated(pod("0.2"))
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]
    debug = container("debug", env=env, envFrom=[prefixed(prefix)])
    after = before | {"spec": before["spec"] | {"ephemeralContainers": [debug]}}
    decision = decide_on_added(msgspec.convert(after, Pod), msgspec.convert(before, Pod), "team", policies())
    is_common = prefix == "NVIDIA_"
    assert isinstance(decision, Denied) is not is_common
    assert (CHANGES.denials(stored(after), stored(before)) == []) is is_common
