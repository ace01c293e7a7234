"""Each webhook by itself: what it answers and serves, without the API server between."""

import json

from tests.cluster.cluster import Cluster
from tests.cluster.installation import Installation
from tests.cluster.pods import pod

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


def names(installed: Installation) -> list[str]:
    """Give the webhook's pods that are not about to end."""
    return [one["metadata"]["name"] for one in installed.pods("webhook")]


def all_say(installed: Installation, words: str) -> bool:
    """Whether /readyz of every worker has *words*."""
    return all(words in line for line in _answers(installed, "/readyz", ""))


def nobody_says(installed: Installation, words: str) -> bool:
    return not any(words in line for line in _answers(installed, "/readyz", ""))


def decisions(installed: Installation, namespace: str, share: str) -> set[bool]:
    """Give what the workers say to a pod: one answer, if they all have the same policies."""
    request = {"uid": "1", "operation": "CREATE", "namespace": namespace, "object": pod(share)}
    request["kind"] = {"group": "", "version": "v1", "kind": "Pod"}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    lines = _answers(installed, "/mutate", json.dumps(review))
    return {json.loads(line)["response"]["allowed"] for line in lines}


def certificates(installed: Installation) -> set[str]:
    """Give the certificates that the pods serve."""
    cluster = installed.cluster
    return {
        cluster.run(f'kubectl -n gpu-share exec {name} -- python3 -c "{_CERTIFICATE}"') for name in names(installed)
    }


def _answers(installed: Installation, path: str, body: str) -> list[str]:
    return [line for name in names(installed) for line in _ask(installed.cluster, name, path, body)]


def _ask(cluster: Cluster, name: str, path: str, body: str) -> list[str]:
    command = f"kubectl -n gpu-share exec -i {name} -- python3 -c '{_ASK}' {path}"
    return cluster.run(command, stdin=body).splitlines()
