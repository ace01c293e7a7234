"""Pods that are deleted by force, with containers that go on: none of what they have is given away meanwhile."""

import time

import pytest

from tests.cluster.cluster import eventually
from tests.cluster.dra.shares import STUBBORN, is_pending, most_of_one_gpu, running, started
from tests.cluster.node import Node
from tests.cluster.pods import Place, container, pod
from tests.cluster.view import shown

LONGER_THAN_A_KUBELET_KILLS = 12
OF_A = "trap '' TERM; while :; do sleep 0.3; done"
# What the kubelet says within a minute of a pod that it has forgotten, whether its containers have ended or not.
UNPREPARE = """\
import grpc
from plugin.dra.v1 import api_pb2, api_pb2_grpc
claim = api_pb2.Claim(namespace="{namespace}", name="{name}", uid="{uid}")
request = api_pb2.NodeUnprepareResourcesRequest(claims=[claim])
with grpc.insecure_channel("unix:/host/var/lib/kubelet/plugins/gpu-share.dev/dra.sock") as channel:
    print(api_pb2_grpc.DRAPluginStub(channel).NodeUnprepareResources(request, timeout=20))
"""


@pytest.mark.kubelet_retry
def test_a_pod_that_was_being_deleted_before_keeps_its_gpu_until_its_container_ends(here: Place, node: Node) -> None:
    loop = container(command=["sh", "-c", OF_A])
    started(here, "0.9", "b", STUBBORN)
    started(here, "0.9", "a", loop, terminationGracePeriodSeconds=600)
    claims = here.cluster.api.get(f"/apis/resource.k8s.io/v1/namespaces/{here.name}/resourceclaims")["items"]
    (claim,) = [one["metadata"] for one in claims if one["metadata"]["name"].startswith("a-")]
    here.cluster.run(f"kubectl -n {here.name} delete pod a --wait=false")
    here.cluster.run(f"kubectl -n {here.name} delete pod a --force --grace-period=0")
    script = UNPREPARE.format(namespace=here.name, name=claim["name"], uid=claim["uid"])
    node.run(f"python3 - <<'END'\n{script}END\n")
    time.sleep(LONGER_THAN_A_KUBELET_KILLS)
    assert here.create(pod("0.9", STUBBORN, name="next")).ok
    eventually(lambda: _tenants(here) == {"a", "b"}, what="what runs is seen")
    eventually(lambda: is_pending(here, "next"), what="the scheduler knows that the GPU is used")
    assert not here.get("next")["spec"].get("nodeName")
    assert most_of_one_gpu(node) == 0.9
    node.kill("sleep 0[.]3")
    running(here, "next")
    assert most_of_one_gpu(node) == 0.9


def _tenants(place: Place) -> set[str]:
    gpus = [gpu for at in shown("top")["nodes"] for gpu in at["gpus"]]
    return {one["pod"] for gpu in gpus for one in gpu["tenants"] if one["namespace"] == place.name}
