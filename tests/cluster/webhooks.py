"""Each webhook by itself: what it answers and serves, without the API server between."""

import json

from tests.cluster.api import Object
from tests.cluster.cluster import Cluster

# Every call is a connection of its own, so that with near certainty each worker process has answered some.
_ASK = """
import ssl, sys, urllib.request as url
context = ssl._create_unverified_context()
body = sys.stdin.read().encode() or None
for _ in range(10):
    request = url.Request("https://127.0.0.1:8443" + sys.argv[1], body, {"Content-Type": "application/json"})
    print(url.urlopen(request, context=context).read().decode().strip().replace(chr(10), " "))
"""
_CERTIFICATE = "import ssl; print(ssl.get_server_certificate(('127.0.0.1', 8443)))"


def names(cluster: Cluster) -> list[str]:
    """Give the webhook's pods that are not about to end."""
    return [one["name"] for one in _metadata(cluster) if "deletionTimestamp" not in one]


def ending(cluster: Cluster) -> list[str]:
    """Give those that are: until they have ended, they answer whom the API server still sends them."""
    return [one["name"] for one in _metadata(cluster) if "deletionTimestamp" in one]


def _metadata(cluster: Cluster) -> list[Object]:
    path, selector = "/api/v1/namespaces/gpu-share/pods", "app.kubernetes.io/component=webhook"
    return [one["metadata"] for one in cluster.api.get(path, labelSelector=selector)["items"]]


def all_say(cluster: Cluster, words: str) -> bool:
    """Whether /readyz of every worker has *words*."""
    lines = _answers(cluster, "/readyz", "")
    return bool(lines) and all(words in line for line in lines)


def nobody_says(cluster: Cluster, words: str) -> bool:
    lines = _answers(cluster, "/readyz", "")
    return bool(lines) and not any(words in line for line in lines)


def decisions(cluster: Cluster, on: Object, namespace: str) -> set[bool]:
    """Give what the workers say to the pod *on*: one answer, if they all have the same policies."""
    request = {"uid": "1", "operation": "CREATE", "namespace": namespace, "object": on}
    request["kind"] = {"group": "", "version": "v1", "kind": "Pod"}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    lines = _answers(cluster, "/mutate", json.dumps(review))
    return {json.loads(line)["response"]["allowed"] for line in lines}


def certificates(cluster: Cluster) -> set[str]:
    """Give the certificates that the pods serve."""
    return {cluster.run(f'kubectl -n gpu-share exec {name} -- python3 -c "{_CERTIFICATE}"') for name in names(cluster)}


def _answers(cluster: Cluster, path: str, body: str) -> list[str]:
    """Ask every pod several times; no answers at all if one of them cannot be asked now."""
    lines = []
    for name in names(cluster):
        asked = cluster.attempt(f"kubectl -n gpu-share exec -i {name} -- python3 -c '{_ASK}' {path}", stdin=body)
        if asked.returncode:
            return []
        lines += asked.stdout.splitlines()
    return lines
