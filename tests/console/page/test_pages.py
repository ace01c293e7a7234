"""What each page says of a cluster."""

import re
import time

import pytest

from console.words import KEPT
from policies.node_state import NotRegistered
from tests.console.objects import ago, closed, cluster, gpu, pod, state, tell, tenant
from tests.console.page.clusters import GRANTED, HOSTILE, lively, with_policies
from tests.console.page.conftest import Visited
from tests.console.page.visitor import words


def test_the_cluster_is_nodes_gpus_tenants_and_what_is_wrong(visited: Visited) -> None:
    text = visited(lively()).text("/")
    read = words(text)
    for expected in (
        "3 nodes, 8 GPUs, 1 unhealthy, largest share that fits: 0.4",
        "gpu-a: GPU 3: the driver reported XID 79 (for 3 min)",
        "team-vision/sweep-17 is Pending: 0/3 nodes are available",
        "team-vision/ReplicaSet/resnet-5d: denied 9 times",
        "4 x NVIDIA H200, driver 580.65",
        "0 free, 0.2 hidden",
        "gpu-c ! no part of gpu-share runs there",
        "A team-vision/ resnet-train-0 main 0.2 21.4 GiB of 28.0 GiB 41% 5 min Running gpu-a",
    ):
        assert expected in read, read
    titles = re.findall("<title>(.*?)</title>", text.partition('aria-label="GPU 1"')[2].partition("</svg>")[0])
    assert titles == [
        "team-vision/resnet-train-1/main 0.2",
        "science/notebook-ada/main 0.1",
        "team-language/embed-serve-0/main 0.3",
        "0.4 free",
    ]
    assert '<rect x="20%" width="30%"' in text


def test_a_namespace_leaves_the_tenants_of_others_without_letters(visited: Visited) -> None:
    text = visited(lively()).text("/", "?namespace=science")
    assert "1 to 3 of 3" in words(text)
    assert text.count('class="other"') == 13
    assert "sweep-17" not in text
    assert "GPU 3: the driver reported XID 79" in text


def test_a_node_shows_its_gpus_in_detail_and_its_pods(visited: Visited) -> None:
    text = words(visited(lively()).text("/", "?node=gpu-b"))
    assert "largest share that fits 0.4" in text
    assert "driver 580.65" in text
    assert "resnet-train-0" not in text
    assert "sweep-17" in text


def test_a_node_to_which_no_new_pod_comes_says_why_and_has_no_room(visited: Visited) -> None:
    for why in ("cordoned", "not Ready"):
        known = cluster(state(gpu(tenant("a", 6))), state(gpu(), on="gpu-b"))
        known.lists["/api/v1/nodes"][1] = closed(why)
        text = visited(known).text("/")
        assert "largest share that fits: 0.4" in words(text)
        assert f'<span class="badge">{why}</span>' in text
        assert ("gpu-b is not Ready" in words(text)) is (why == "not Ready")


def test_pods_come_a_hundred_at_a_time_and_are_found_by_name(visited: Visited) -> None:
    known = cluster(state(gpu()), pods=tuple(pod(f"p-{number:03}") for number in range(250)))
    visitor = visited(known)
    assert "1 to 100 of 250" in words(visitor.text("/"))
    assert "101 to 200 of 250" in words(visitor.text("/", "?page=2"))
    assert "p-142" in visitor.text("/", "?pod=-142")
    for odd in ("9999", "-1", "0", "x", "%00", "1e9"):
        assert " of 250" in words(visitor.text("/", f"?page={odd}")), odd


def test_a_pod_is_explained_as_by_the_command(visited: Visited) -> None:
    text = words(visited(lively()).text("/explain", "?namespace=team-vision&name=resnet-train-0"))
    for expected in (
        "Pod team-vision/resnet-train-0: Running on gpu-a for 5 min",
        "annotation gpu-share: 0.2",
        "with team-vision/segment-api-7c9d-x2x8q/main (0.3), team-language/bert-serve-0/main (0.5)",
        "Policy: team-vision.yaml over _default.yaml.",
    ):
        assert expected in text, text


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("?name=pod/none&namespace=team-vision", "there is no Pod team-vision/none"),
        ("?name=secret/x", "expected a pod, or one of"),
        ("?name=../../x", "expected the name of a pod"),
        ("?name=%3Cb%3E", "expected the name of a pod"),
    ],
)
def test_what_cannot_be_explained_is_one_sentence(visited: Visited, query: str, why: str) -> None:
    assert why in words(visited(lively()).text("/explain", query))


def test_policies_have_each_field_with_file_and_line(visited: Visited) -> None:
    visitor = visited(lively())
    text = words(visitor.text("/policies", "?namespace=team-language"))
    assert 'share.maximum "1" team-language.yaml:3' in text
    assert 'mode "enforce" built-in default' in text
    assert 'share.maximum "0.5" _default.yaml:1' in words(visitor.text("/policies"))
    assert "kube-system is exempt" in words(visitor.text("/policies", "?namespace=kube-system"))


def test_a_broken_policy_is_told_with_its_line(visited: Visited) -> None:
    known = with_policies(cluster(state(gpu())), **{"team-vision.yaml": "share: {minimum: 2x}\n"})
    text = words(visited(known).text("/policies", "?namespace=team-vision"))
    assert "team-vision.yaml:1" in text
    assert KEPT in text
    answer = visited(known).post("/preview", {"pod": GRANTED, "namespace": ""})
    assert f"where a file is broken, {KEPT}" in words(answer.data.decode())


def test_a_pod_that_is_pasted_is_previewed_by_the_policies_of_the_cluster(visited: Visited) -> None:
    answer = visited(lively()).post("/preview", {"pod": GRANTED, "namespace": ""})
    text = words(answer.data.decode())
    assert "Pod team-vision/trial: granted" in text
    assert "Policy: team-vision.yaml over _default.yaml." in text
    assert "add /spec/containers/0/resources" in text


def test_a_pod_without_a_namespace_is_in_that_of_the_page(visited: Visited) -> None:
    pasted = GRANTED.replace("namespace: team-vision, ", "")
    answer = visited(lively(), namespace="team-vision").post("/preview", {"pod": pasted, "namespace": ""})
    assert "Pod team-vision/trial: granted" in words(answer.data.decode())


@pytest.mark.parametrize(
    ("pasted", "namespace", "why"),
    [
        (GRANTED.replace("0.2", "0.9"), "", "denied, ShareAboveMaximum"),
        (GRANTED, "science", "Pod science/trial: granted"),
        ("a: [", "", "a bracket or brace is not closed"),
        ("", "", "expected a pod, or an object that makes pods"),
        (f"kind: '{HOSTILE}'", "", "No pod and no pod template here"),
        (GRANTED, "<b>", "expected the name of a namespace"),
        ("[" * 100_000, "", "pasted:1"),
        ("kind: Pod\n!!bool x: y", "", "pasted:2: invalid YAML: expected true or false"),
    ],
)
def test_what_is_pasted_is_decided_or_rejected_in_words(
    visited: Visited, pasted: str, namespace: str, why: str
) -> None:
    answer = visited(lively()).post("/preview", {"pod": pasted, "namespace": namespace})
    assert answer.status == 200
    assert why in words(answer.data.decode())
    assert "<script>alert" not in answer.data.decode()


def test_only_sections_that_changed_are_sent_again(visited: Visited) -> None:
    begun = pod("resnet-0")
    begun["metadata"]["creationTimestamp"] = ago(seconds=1)
    known = cluster(state(gpu()), pods=(begun,))
    visitor = visited(known)
    prints = re.findall(r'name="known" value="([^"]+)"', visitor.text("/"))
    assert {one.rpartition("-")[0] for one in prints} == {"status", "troubles", "nodes", "pods"}
    rest = "".join(f"&known={one}" for one in prints if not one.startswith("status"))
    tell(known, state(gpu(tenant("resnet-0", 2))))
    deadline = time.monotonic() + 20
    while "node-gpu-a" not in (text := visitor.text("/", f"?namespace={rest}")):
        assert time.monotonic() < deadline, text
        time.sleep(0.1)
    assert 'hx-target="#troubles"' not in text
    now = re.findall(r'name="known" value="([^"]+)"', visitor.text("/"))
    again = visitor.ask("/", "?" + "".join(f"&known={one}" for one in now))
    assert again.status in (200, 204)  # a look may have ended meanwhile


def test_gpus_of_which_kubernetes_has_none_to_give_need_attention(visited: Visited) -> None:
    unknown = (NotRegistered(resource="gpu-share.dev/vgpu", why="the kubelet said no"),)
    text = words(visited(cluster(state(gpu(), not_registered=unknown))).text("/"))
    assert "Needs attention 1" in text
    assert "! gpu-a: Kubernetes has none of its gpu-share.dev/vgpu to give: the kubelet said no" in text
