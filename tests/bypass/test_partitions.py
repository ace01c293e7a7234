"""No way past a partition in the API server's own policies, where the webhook is not there to see the pod."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.manifests.admission import BASE, policy, stored
from tests.manifests.granted_pods import AMD, MIG
from tests.policies.pods import VGPU, container, limited, mutated, pod

Change = Callable[[dict[str, Any]], None]

POLICY = policy(BASE)
GRANT = "gpu-share.dev/grant"


def limits(on: dict[str, Any], of: int = 0) -> dict[str, Any]:
    made: dict[str, Any] = on["spec"]["containers"][of]["resources"]["limits"]
    return made


def without_the_annotation(on: dict[str, Any]) -> None:
    del on["metadata"]["annotations"]["gpu-share"]


def one_more_partition(on: dict[str, Any]) -> None:
    limits(on)["nvidia.com/mig-1g.10gb"] = "2"


def another_partition(on: dict[str, Any]) -> None:
    limits(on)["nvidia.com/mig-3g.40gb"] = "1"


def a_whole_gpu_beside(on: dict[str, Any]) -> None:
    on["spec"]["containers"].append(limited("c", 1, "nvidia.com/gpu"))


def vgpus_beside(on: dict[str, Any]) -> None:
    limits(on)[VGPU] = "10"


def vgpus_in_another_container(on: dict[str, Any]) -> None:
    on["spec"]["containers"].append(limited("c", 10, VGPU))


def host_ipc(on: dict[str, Any]) -> None:
    on["spec"]["hostIPC"] = True


def a_second_entry_in_the_grant(on: dict[str, Any]) -> None:
    text = on["metadata"]["annotations"][GRANT]
    on["metadata"]["annotations"][GRANT] = text.replace(
        '"containers":{', '"containers":{"b":{"resource":"nvidia.com/gpu","count":8,"share":"8"},'
    )


def a_grant_of_vgpus(on: dict[str, Any]) -> None:
    text = on["metadata"]["annotations"][GRANT]
    on["metadata"]["annotations"][GRANT] = text.replace('"resource":"nvidia.com/mig-1g.10gb","count":1', '"vgpus":1')


@pytest.mark.parametrize(
    "change",
    [
        without_the_annotation,
        one_more_partition,
        another_partition,
        a_whole_gpu_beside,
        vgpus_beside,
        vgpus_in_another_container,
        host_ipc,
        a_second_entry_in_the_grant,
        a_grant_of_vgpus,
    ],
    ids=lambda change: change.__name__,
)
def test_what_was_not_granted_is_denied(change: Change) -> None:
    on = mutated(pod("0.1", container("a"), container("b")), MIG)
    assert POLICY.denials(stored(on)) == []
    change(on)
    assert POLICY.denials(stored(on)) != []


@pytest.mark.parametrize("variable", ["AMD_VISIBLE_DEVICES", "HABANA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"])
@pytest.mark.parametrize("of", [0, 1])
def test_a_variable_that_chooses_devices_is_denied(variable: str, of: int) -> None:
    on = mutated(pod("0.1", container("a"), container("b")), AMD)
    env = [one for one in on["spec"]["containers"][of].get("env", []) if one["name"] != variable]
    on["spec"]["containers"][of]["env"] = [*env, {"name": variable, "value": "all"}]
    assert any("pod with partitions sets a reserved variable" in one for one in POLICY.denials(stored(on)))


def test_a_grant_of_partitions_brings_no_vgpus() -> None:
    forged = pod("0.1", limited("main", 10, VGPU))
    forged["metadata"]["annotations"][GRANT] = (
        '{"policy":"_default","strategy":"partition","partition":"h100",'
        '"containers":{"main":{"resource":"gpu-share.dev/vgpu","count":10,"share":"1"}}}'
    )
    forged["metadata"]["labels"] = {"gpu-share.dev/shared": "true"}
    assert POLICY.denials(stored(forged)) != []
