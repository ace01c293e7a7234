"""Pods that are deleted by force, with containers that go on: none of what they have is given away meanwhile."""

import time

import pytest

from tests.cluster.cluster import eventually
from tests.cluster.dra.shares import STUBBORN, is_pending, most_of_one_gpu, running, started
from tests.cluster.node import Node
from tests.cluster.pods import Place, pod, stubborn
from tests.cluster.view import tenants_in

LONGER_THAN_A_KUBELET_KILLS = 12
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
    started(here, "0.9", "b", STUBBORN)
    started(here, "0.9", "a", stubborn("0.3"), terminationGracePeriodSeconds=600)
    claims = here.cluster.api.get(f"/apis/resource.k8s.io/v1/namespaces/{here.name}/resourceclaims")["items"]
    (claim,) = [one["metadata"] for one in claims if one["metadata"]["name"].startswith("a-")]
    here.delete_twice("a")
    try:
        script = UNPREPARE.format(namespace=here.name, name=claim["name"], uid=claim["uid"])
        node.run(f"python3 - <<'END'\n{script}END\n")
        time.sleep(LONGER_THAN_A_KUBELET_KILLS)
        assert here.create(pod("0.9", STUBBORN, name="next")).ok
        eventually(lambda: tenants_in(here.name) == {"a", "b"}, what="what runs is seen")
        eventually(lambda: is_pending(here, "next"), what="the scheduler knows that the GPU is used")
        assert not here.get("next")["spec"].get("nodeName")
        assert most_of_one_gpu(node) == 0.9
    finally:
        node.kill("sleep 0[.]3")
    running(here, "next")
    assert most_of_one_gpu(node) == 0.9
