"""What the page says of the last hour."""

import json
from base64 import b64encode
from collections.abc import Callable

import pytest

from policies.node_state import MpsDaemon
from tests.console.installations import ca, of_invalid_version
from tests.console.objects import ago, cluster, denial, gpu, part, pod, read_by, state, tenant
from tests.console.page.clusters import lively
from tests.console.page.conftest import Visited
from tests.console.page.visitor import until, words


def test_changes_say_when_what_and_who_says_so(visited: Visited) -> None:
    known = lively()
    event = {**denial("0/3 nodes are available", kind="Pod", name="sweep-17"), "reason": "FailedScheduling"}
    known.lists["/api/v1/events"].append({**event, "type": "Warning"})
    text = words(visited(known).text("/changes"))
    for expected in (
        "✗ GPU 3 of gpu-a became unhealthy: the driver reported XID 79 node gpu-a",
        "team-vision/resnet-train-0 was created explain Kubernetes",
        "team-vision/resnet-train-0/main got 0.2 of GPU 0 of gpu-a explain node gpu-a",
        "ConfigMap gpu-share-policies was changed by kubectl-client-side-apply Kubernetes: managedFields",
        "team-vision/sweep-17: FailedScheduling: Error creating: 0/3 nodes are available explain event",
        "GPU 3 of gpu-b became healthy node gpu-b",
    ):
        assert expected in text, text


def test_an_edit_of_any_config_map_that_the_webhook_reads_is_a_change(visited: Visited) -> None:
    known = lively()
    edit = {"manager": "argocd", "operation": "Update", "time": ago(minutes=9)}
    known.lists["/api/v1/namespaces/gpu-share/configmaps"] += [
        {"metadata": {"name": name, "managedFields": [edit]}} for name in ("team-policies", "of-somebody-else")
    ]
    webhook = part("gpu-a", "webhook")
    webhook["spec"]["volumes"] = [read_by("gpu-share-policies", "gpu-share-cluster", "team-policies")]
    known.lists["/api/v1/namespaces/gpu-share/pods"].append(webhook)
    text = words(visited(known).text("/changes"))
    assert "ConfigMap team-policies was changed by argocd" in text
    assert "of-somebody-else" not in text


@pytest.mark.parametrize(("as_served", "times"), [(bytes, 1), (of_invalid_version, 0)])
def test_a_certificate_that_is_served_anew_is_a_change_if_it_can_be_read(
    visited: Visited, as_served: Callable[[bytes], bytes], times: int
) -> None:
    known = cluster()
    secret = {"data": {"tls.crt": b64encode(as_served(ca(365))).decode()}}
    known.raw["/api/v1/namespaces/gpu-share/secrets/gpu-share-webhook-tls"] = (200, json.dumps(secret).encode())
    text = words(visited(known).text("/changes"))
    assert text.count("the certificate that the webhook serves became valid") == times, text


def test_what_is_older_than_an_hour_is_no_change(visited: Visited) -> None:
    old = pod("old")
    old["metadata"]["creationTimestamp"] = ago(hours=2)
    daemon = MpsDaemon(state="ready", since=ago(minutes=59))
    known = cluster(state(gpu(mps_daemon=daemon), gpu(index=1, mps_daemon=daemon)), pods=(old,))
    text = words(visited(known).text("/changes"))
    assert "old was created" not in text
    assert "GPUs 0, 1 of gpu-a has its MPS daemon ready" in text


def test_what_is_gone_is_kept_by_the_console_itself(visited: Visited) -> None:
    known = cluster(state(gpu(tenant("resnet-0", 2))), state(gpu(), on="gpu-b"), pods=(pod("resnet-0"),))
    visitor = visited(known)
    until(visitor, "/", "resnet-0")
    known.lists["/api/v1/pods"].clear()
    known.states.pop("gpu-share-plugin-gpu-b:9407")
    text = until(visitor, "/changes", "team-vision/resnet-0 is gone")
    assert "seen by this console" in text
    assert "node gpu-b says nothing any more" in text
