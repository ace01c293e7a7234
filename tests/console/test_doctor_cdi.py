"""What `gpu-share doctor` says of CDI where some nodes allocate by DRA and others do not."""

import pytest

from console.doctor.report import AFTER, Finding, findings
from console.objects import Node
from console.seen_nodes import seen_nodes
from tests.console.installations import CLUSTER, dra, installation, parsed, policies, seen
from tests.console.objects import gpu, node, state


def cdi(*runtimes: tuple[str, str], handover: str) -> Finding:
    """Judge nodes, each with a way of allocation and a container runtime."""
    made = [
        parsed(node(f"gpu-{number}", nodeInfo={"containerRuntimeVersion": runtime}), Node)
        for number, (_, runtime) in enumerate(runtimes)
    ]
    said = {
        f"gpu-{number}": state(gpu(allocation=allocation), on=f"gpu-{number}")
        for number, (allocation, _) in enumerate(runtimes)
    }
    by_dra = {**dra(), **policies(f"{CLUSTER}handover: [{handover}]\n", x="allocation: dra\n")}
    on = installation(seen(nodes=seen_nodes(made, said)), **by_dra)
    return next(one for one in findings(on, AFTER) if one.check == "cdi")


@pytest.mark.parametrize("handover", ["envvar", "cdi, envvar"])
@pytest.mark.parametrize("runtime", ["containerd://1.6.39", "containerd://1.7.27", "docker://28.1"])
def test_a_node_without_dra_needs_no_cdi_beside_one_with_it(handover: str, runtime: str) -> None:
    assert cdi(("dra", "containerd://2.1.4"), ("device-plugin", runtime), handover=handover).status == "ok"


@pytest.mark.parametrize("handover", ["envvar", "cdi, envvar"])
def test_a_node_with_dra_needs_cdi_whatever_the_others_have(handover: str) -> None:
    found = cdi(("dra", "containerd://1.6.39"), ("device-plugin", "containerd://2.1.4"), handover=handover)
    assert (found.status, found.found) == ("failure", ("gpu-0: containerd 1.6.39 has no CDI",))
    assert "allocation: device-plugin" in found.hint


@pytest.mark.parametrize(
    ("handover", "instead"),
    [("cdi", "say handover: [envvar] in _cluster.yaml"), ("envvar", "allocation: device-plugin for GPUs of this node")],
)
def test_where_a_pods_variables_win_the_hint_says_how_a_container_gets_its_gpu_otherwise(
    handover: str, instead: str
) -> None:
    found = cdi(("dra", "cri-o://1.33.2"), handover=handover)
    why = "CRI-O 1.33.2 sets a pod's variables after those of the share, so an envFrom can lift its limits"
    assert (found.status, found.found) == ("warning", (f"gpu-0: {why}",))
    assert found.hint.startswith(f"upgrade the container runtime, or {instead}")
    assert "enable_cdi" not in found.hint


def test_each_kind_of_runtime_has_its_own_hint() -> None:
    found = cdi(("dra", "cri-o://1.33.2"), ("dra", "containerd://1.7.27"), handover="cdi")
    assert len(found.found) == 2
    assert found.hint.startswith("upgrade the container runtime, or say handover: [envvar]")
    assert found.hint.endswith("; containerd config dump on the node, or env in a container with a share, tells")


def test_by_cdi_alone_every_node_needs_it() -> None:
    found = cdi(("dra", "containerd://2.1.4"), ("device-plugin", "containerd://1.6.39"), handover="cdi")
    assert (found.status, found.found) == ("failure", ("gpu-1: containerd 1.6.39 has no CDI",))
