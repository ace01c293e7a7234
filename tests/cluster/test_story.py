"""
A day of one cluster: ten tenants, and what goes wrong with them. In each situation `top`, `explain`, `doctor`,
`plugin status`, the page and the metrics say the same, and after the mend that all is well again.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.cluster import eventually
from tests.cluster.installation import SIMULATED, VGPU, Installation
from tests.cluster.node import Node
from tests.cluster.page import console, page_says
from tests.cluster.pods import Place, pod
from tests.cluster.scraping import values
from tests.cluster.test_doctor import checks, told
from tests.cluster.test_fragmentation import deployment, shows
from tests.cluster.view import explained, is_well, says, shown, view
from tests.console.page.visitor import Visitor

pytestmark = pytest.mark.usefixtures("classes")

TENANTS = 10
AT_SECONDS, RECOVERS_SECONDS = 10, 50  # of the XID, after the start of the plugin
SCRIPT = f"""\
gpus: [{{model: H200, numaNode: 0}}, {{model: H200, numaNode: 1}}]
faults:
- {{at: 5, gpu: 0, xid: 31}}
- {{at: {AT_SECONDS}, gpu: 0, xid: 79, recovers: {RECOVERS_SECONDS}}}
"""


@pytest.fixture(scope="module")
def vision(first: Installation) -> Iterator[Place]:
    """Give the namespace of the ten tenants, who run."""
    first.use(SIMULATED)
    place = Place.make(first.cluster, "team-vision")
    start_tenants(place)
    yield place
    place.remove()


@pytest.fixture(scope="module")
def page(vision: Place) -> Iterator[Visitor]:  # noqa: ARG001 - once there is something to see
    with console() as opened:
        yield opened


def start_tenants(place: Place) -> None:
    """Have all ten run, those that are missing anew."""
    names = [f"resnet-{number}" for number in range(TENANTS)]
    for name in names:
        place.create(pod("0.1", name=name))
    for name in names:
        place.running(name, seconds=90)


def leave_gpu(place: Place, count: int) -> None:
    """Have some of the tenants go."""
    names = [one["pod"] for gpu in gpus() for one in gpu["tenants"] if one["namespace"] == place.name]
    place.cluster.run(f"kubectl -n {place.name} delete pod {' '.join(names[:count])} --grace-period=1")


@pytest.fixture
def language(vision: Place) -> Iterator[Place]:
    """Give another namespace, and two GPUs of which half is free each; afterwards there are ten tenants again."""
    made = Place.make(vision.cluster, "team-language")
    made.started(pod("0.5", name="bert-small"))  # on the second GPU, since ten tenants fill the first one
    leave_gpu(vision, TENANTS // 2)
    eventually(lambda: [gpu["granted"] for gpu in gpus()] == [5, 5], what="half of each GPU is free")
    shows(vision.cluster, 2 * 5 + 5)  # before, the scheduler would send in vain what needs more
    yield made
    made.remove()
    start_tenants(vision)


def gpus() -> list[Any]:
    (node,) = shown("top")["nodes"]
    return list(node["gpus"])


def plugin_status(installed: Installation) -> str:
    (part,) = installed.pods("plugin")
    return installed.cluster.attempt(
        f"kubectl -n gpu-share exec {part['metadata']['name']} -- gpu-share plugin status"
    ).stdout


def test_ten_tenants_are_shown_each_once_and_all_is_well(installed: Installation, vision: Place, page: Visitor) -> None:
    def complete() -> list[Any] | None:
        found = gpus()
        return found if sum(len(gpu["tenants"]) for gpu in found) == TENANTS else None

    shared = eventually(complete, what="top shows ten tenants")
    assert sum(gpu["granted"] for gpu in shared) == TENANTS
    assert all(gpu["healthy"] for gpu in shared)
    assert view("top", "--once").stdout.count("  resnet-") == TENANTS
    text = page_says(page, "/", "1 to 10 of 10")
    assert text.count(" team-vision/ resnet-") == TENANTS
    assert "1 node, 2 GPUs" in text
    assert "Needs attention" not in text
    assert "resnet-3 was created" in page_says(page, "/changes", "Kubernetes")
    found = explained("resnet-3", vision.name)
    assert found[""].startswith("Pod team-vision/resnet-3: Running on ")
    on_page = page_says(page, "/explain?namespace=team-vision&name=resnet-3", found[""].rpartition(" for ")[0])
    assert found["Granted"].splitlines()[0] in on_page
    assert "annotation gpu-share: 0.1" in found["Request"]
    assert "0.1 of H200" in found["GPU"]
    (beside,) = (len(gpu["tenants"]) - 1 for gpu in shared if "resnet-3" in {one["pod"] for one in gpu["tenants"]})
    assert found["GPU"].count("team-vision/resnet-") == beside
    assert "team-vision.yaml:3" in found["Policies of now"]
    eventually(is_well, what="doctor finds nothing wrong")
    assert view("doctor").returncode == 0
    assert [checks()[name]["status"] for name in ("pods-run", "shares-fit")] == ["ok", "not-applicable"]
    assert values(installed, "plugin", "gpu_share_granted_ratio", namespace=vision.name) == [0.1] * TENANTS
    assert values(installed, "plugin", "gpu_share_gpu_healthy") == [1, 1]
    assert plugin_status(installed).count("tenant: 0.1 team-vision/resnet-") == TENANTS


def test_a_fragmented_node_is_told_with_what_waits_for_one_gpu(
    installed: Installation, vision: Place, language: Place, page: Visitor
) -> None:
    assert language.create(pod("0.7", name="bert")).ok
    found = says("bert", language.name, "State", "no GPU has 0.7 free: GPU 0 has 0.")
    assert "hidden" in found["State"]
    assert "hidden" in page_says(page, "/", "! team-language/bert is Pending: ")
    assert "no GPU has 0.7 free" in page_says(page, "/explain?namespace=team-language&name=bert", "hidden")
    largest = max(gpu["largest_free"] for gpu in gpus())
    assert largest < 7
    assert found[""].startswith("Pod team-language/bert: Pending for ")
    assert f"Insufficient {VGPU}" in found["State"]
    assert sum(gpu["free"] + gpu["hidden"] for gpu in gpus()) == 10
    assert "! team-language/bert is Pending: " in view("top", "--once").stdout
    assert told("pods-run", "team-language/bert is Pending")["status"] == "warning"
    assert told("shares-fit", f"1 of GPUs is free, the largest share that fits is 0.{largest}")["status"] == "warning"
    eventually(is_well, what="what waits is no failure of the installation")
    hidden = sum(values(installed, "plugin", "gpu_share_gpu_hidden_ratio"))
    assert hidden == pytest.approx(1 - sum(values(installed, "plugin", "gpu_share_gpu_free_ratio")))
    assert max(values(installed, "plugin", "gpu_share_gpu_largest_free_ratio")) == pytest.approx(largest / 10)
    assert "largest share that fits: 0." in plugin_status(installed)
    rejected_by_a_kubelet(installed, language)
    leave_gpu(vision, 7 - largest)
    language.running("bert")
    assert "State" not in explained("bert", language.name)
    eventually(lambda: checks()["shares-fit"]["status"] == "ok", what="nothing waits for one GPU")


def rejected_by_a_kubelet(installed: Installation, language: Place) -> None:
    """Bring a pod past the scheduler to a node that has no room for it, and see what is said of it."""
    (node,) = installed.nodes()
    assert language.create(pod("0.7", name="pinned", schedulerName="nobody")).ok
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "pinned"}, "target": target}
    assert language.cluster.api.ask("POST", f"{language.path}/pinned/binding", binding).ok
    failed = says("pinned", language.name, "State", "UnexpectedAdmissionError")
    assert failed[""].startswith("Pod team-language/pinned: Failed on ")
    assert "requested number of devices unavailable" in failed["State"]
    assert "what to do: " in failed["State"]
    assert told("pods-run", "team-language/pinned is Failed")["status"] == "warning"


def test_a_denied_deployment_is_told_with_file_and_line(vision: Place, page: Visitor) -> None:
    vision.apply(deployment("0.8"))
    found = says("deploy/model", vision.name, "Not created", "ReplicaSet model-")
    assert found[""] == "Deployment team-vision/model: no pods"
    assert "at most 0.5 is allowed here (team-vision.yaml:3)" in found["Not created"]
    assert explained("model", vision.name)["Not created"]
    assert "✗ team-vision/ReplicaSet/model-" in view("top", "--once").stdout
    assert "(team-vision.yaml:3)" in page_says(page, "/", "✗ team-vision/ReplicaSet/model-")
    assert told("pods-admitted", "team-vision.yaml:3")["status"] == "warning"
    vision.cluster.run("kubectl -n team-vision delete deployment model")


@pytest.fixture
def scripted(installed: Installation, node: Node) -> Iterator[None]:
    """Have the plugin simulate faults from a file of the node."""
    where = "daemonset/gpu-share-plugin GPU_SHARE_SIMULATE"
    node.run(f"cat >/host/run/gpu-share/simulated.yaml <<'END'\n{SCRIPT}END\n")
    installed.run(f"kubectl -n gpu-share set env {where}=/run/gpu-share/simulated.yaml")
    yield
    installed.run(f"kubectl -n gpu-share set env {where}=2xH200")
    installed.run("kubectl -n gpu-share rollout status daemonset/gpu-share-plugin")
    installed.wait_until_ready()


@pytest.mark.usefixtures("scripted")
def test_an_xid_is_told_with_what_ends_it_and_who_is_on_the_gpu(
    installed: Installation, vision: Place, page: Visitor
) -> None:
    failed = told("gpus-healthy", "XID 79")
    assert failed["status"] == "failure"
    page_says(page, "/", "GPU 0: the driver reported XID 79")
    page_says(page, "/changes", "became unhealthy: the driver reported XID 79")
    assert view("doctor").returncode == 1
    tenant = gpus()[0]["tenants"][0]["pod"]
    found = explained(tenant, vision.name)["GPU"]
    assert "the GPU is unhealthy: the driver reported XID 79" in found
    assert "a program on this GPU had a fault, XID 31" in found
    assert [(gpu["healthy"], gpu["largest_free"] > 0) for gpu in gpus()] == [(False, False), (True, True)]
    assert "✗ GPU 0: the driver reported XID 79" in view("top", "--once").stdout
    assert values(installed, "plugin", "gpu_share_gpu_healthy", gpu="0") == [0]
    assert values(installed, "plugin", "gpu_share_gpu_fault", gpu="0", fault="xid") == [1]
    assert "XID 79" in plugin_status(installed)
    eventually(is_well, seconds=120, what="the GPU recovers")
    assert "unhealthy" not in explained(tenant, vision.name)["GPU"]
    assert [gpu["healthy"] for gpu in gpus()] == [True, True]
    assert values(installed, "plugin", "gpu_share_gpu_healthy") == [1, 1]


def test_a_broken_policy_is_told_with_its_line_and_by_whom_it_holds(
    installed: Installation, vision: Place, page: Visitor
) -> None:
    good = (installed.tree / "policies" / "files" / "team-vision.yaml").read_text()
    installed.change_policies(**{"team-vision": "share:\n  maximum: 7.5\n"})
    try:
        assert told("policies-valid", "team-vision.yaml:2")["status"] == "failure"
        page_says(page, "/policies?namespace=team-vision", "team-vision.yaml:2")
        assert told("policies-in-force", "policy file broken: ")["status"] == "failure"
        assert view("doctor").returncode == 1
        file = "/etc/gpu-share/policies/team-vision.yaml"
        broken = values(installed, "webhook", "gpu_share_policy_file_broken", file=file)
        assert broken == [1] * len(installed.pods("webhook"))
        assert "team-vision.yaml:2" in explained("resnet-0", vision.name)["Not seen"]
    finally:
        installed.change_policies(**{"team-vision": good})
    eventually(is_well, what="the policies are in force again")
    assert not sum(values(installed, "webhook", "gpu_share_policy_file_broken"))
    assert "team-vision.yaml:3" in explained("resnet-0", vision.name)["Policies of now"]
