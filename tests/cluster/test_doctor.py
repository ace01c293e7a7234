"""`gpu-share doctor` on a real cluster: in order after an installation, and each of these told when it is not."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.cluster import eventually
from tests.cluster.installation import Installation
from tests.cluster.node import Node
from tests.cluster.pods import Place, pod
from tests.cluster.view import account, shown, view

pytestmark = pytest.mark.usefixtures("classes")

_ADMISSION = "/apis/admissionregistration.k8s.io/v1"
_HOOKS = f"{_ADMISSION}/mutatingwebhookconfigurations/gpu-share"
_NAMESPACES = "/spec/matchConstraints/namespaceSelector/matchExpressions"


def checks(*words: str) -> dict[str, Any]:
    return {one["check"]: one for one in shown("doctor", *words)}


def told(check: str, text: str, *words: str) -> Any:
    """Wait until a check says something."""

    def look() -> Any:
        found = checks(*words).get(check, {})
        return found if text in " ".join(found.get("found", ())) else None

    return eventually(look, what=f"{check} says {text}")


def test_an_installation_is_in_order(installed: Installation) -> None:
    """But for what a test finds odd: GPUs that are simulated have nothing of this."""
    assert installed.overlay

    in_order = (
        *("kubernetes-version", "apis", "webhook-answers", "webhook-configured", "certificates", "renewal"),
        *("policies-valid", "policies-in-force", "admission-policies", "admission-asked"),
        "admission-shipped",
        *("exempt-namespaces", "resource-names"),
        *("pipe-directory", "host-paths", "warn-mode", "nodes-ready", "nodes-speak", "registered"),
        *("drivers", "cdi", "feature-gates"),
    )

    def look() -> bool:  # a node's status may be ten seconds old
        found = {name: one["status"] for name, one in checks().items()}
        return "failure" not in found.values() and {found[name] for name in in_order} == {"ok"}

    eventually(look, what="no check fails")
    assert view("doctor").returncode == 0


@contextmanager
def without_bundle(installed: Installation) -> Iterator[None]:
    """Take the CA bundle away, as `kubectl replace` does, until a pass has written it again."""
    run = installed.cluster.run
    run("kubectl -n gpu-share scale deployment gpu-share-certs --replicas=0")
    eventually(lambda: not installed.pods("certs"), what="no pass is made")
    count = len(installed.cluster.api.get(_HOOKS)["webhooks"])
    before = [one["clientConfig"]["caBundle"] for one in installed.cluster.api.get(_HOOKS)["webhooks"]]
    path = "/webhooks/{}/clientConfig/caBundle"
    installed.cluster.api.ask(
        "PATCH", _HOOKS, [{"op": "remove", "path": path.format(number)} for number in range(count)]
    )
    try:
        yield
    finally:
        restored = [{"op": "add", "path": path.format(number), "value": one} for number, one in enumerate(before)]
        installed.cluster.api.ask("PATCH", _HOOKS, restored)
        run("kubectl -n gpu-share scale deployment gpu-share-certs --replicas=1")
        eventually(lambda: checks()["webhook-answers"]["status"] == "ok", what="the webhook is trusted again")


def test_a_lost_ca_bundle_is_told_with_what_the_api_server_says(installed: Installation) -> None:
    with without_bundle(installed):
        assert told("webhook-configured", "has no caBundle")["status"] == "failure"
        assert told("webhook-answers", "x509")["status"] == "failure"
        assert told("renewal", "no pod of gpu-share-certs")["status"] == "warning"
        assert view("doctor").returncode == 1


def test_without_a_webhook_pod_it_is_told_that_none_runs_and_what_the_api_server_says(installed: Installation) -> None:
    run = installed.cluster.run
    run("kubectl -n gpu-share scale deployment gpu-share-webhook --replicas=0")
    try:
        assert told("webhook-runs", "none of 0 webhook pods is ready")["status"] == "failure"
        assert told("webhook-answers", "failed calling webhook")["status"] == "failure"
    finally:
        run("kubectl -n gpu-share scale deployment gpu-share-webhook --replicas=2")
        installed.wait_until_ready()


def test_a_broken_policy_is_told_with_its_line_by_the_file_and_by_the_webhook(installed: Installation) -> None:
    installed.change_policies(**{"team-broken": "share:\n  maximum: 7.5\n"})
    try:
        assert told("policies-valid", "team-broken.yaml:2")["status"] == "failure"
        assert told("policies-in-force", "policy file broken: ")["status"] == "failure"
    finally:
        installed.change_policies(**{"team-broken": None})
    eventually(lambda: checks()["policies-in-force"]["status"] == "ok", what="the policies are in force again")


def test_second_places_that_differ_are_told(installed: Installation) -> None:
    labelled = Place.make(installed.cluster, labels={"gpu-share.dev/mode": "warn"})
    assert told("warn-mode", f"{labelled.name} has the label")["status"] == "warning"
    labelled.remove()
    annotated = Place.make(installed.cluster, annotations={"gpu-share.dev/host-paths": "/data/models"})
    assert told("host-paths", f"{annotated.name}: its policy lacks /data/models")["status"] == "warning"
    annotated.remove()
    restricted = Place.make(
        installed.cluster, "attach-pod", labels={"pod-security.kubernetes.io/enforce": "restricted"}
    )
    assert told("pod-security", "attach-pod enforces restricted, and says attach: pod")["status"] == "failure"
    restricted.remove()


def test_admission_policies_that_are_missing_or_differ_are_told(installed: Installation) -> None:
    """Those of updates alone: the others are put back before anything is created."""
    run, policy = installed.cluster.run, "validatingadmissionpolicies/gpu-share-changes"
    before = installed.cluster.api.get(f"{_ADMISSION}/{policy}")
    pipes = next(n for n, one in enumerate(before["spec"]["variables"]) if one["name"] == "pipes")
    changes = [
        {"op": "replace", "path": f"/spec/variables/{pipes}/expression", "value": "'^/elsewhere'"},
        {"op": "add", "path": f"{_NAMESPACES}/0/values/-", "value": "test-of-doctor"},
        {"op": "replace", "path": "/spec/failurePolicy", "value": "Ignore"},
    ]
    binding = f"{_ADMISSION}/validatingadmissionpolicybindings/gpu-share-changes"
    bound = installed.cluster.api.get(binding)
    try:
        installed.cluster.api.ask("PATCH", f"{_ADMISSION}/{policy}", changes)
        run("kubectl delete validatingadmissionpolicybinding gpu-share-changes")
        assert told("admission-policies", "no binding has the ValidatingAdmissionPolicy gpu-share-changes deny")
        assert told(
            "pipe-directory",
            "the variable pipes of the policy gpu-share-changes is not the pattern that gpu-share ships for",
        )
        assert told("exempt-namespaces", "the policy gpu-share-changes is not called for test-of-doctor")
        assert told("admission-asked", "the policy gpu-share-changes has failurePolicy: Ignore")
    finally:
        restored = [
            {"op": "replace", "path": "/spec/failurePolicy", "value": "Fail"},
            {"op": "replace", "path": "/spec/variables", "value": before["spec"]["variables"]},
            {
                "op": "replace",
                "path": _NAMESPACES,
                "value": before["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"],
            },
        ]
        installed.cluster.api.ask("PATCH", f"{_ADMISSION}/{policy}", restored)
        again = {"metadata": {"name": bound["metadata"]["name"]}, "spec": bound["spec"]}
        installed.cluster.api.ask("POST", binding.rpartition("/")[0], again)
    eventually(lambda: checks()["admission-policies"]["status"] == "ok", what="the policies are as before")


@pytest.mark.usefixtures("installed")
def test_a_toolkit_that_rejects_the_variable_by_which_containers_get_their_gpu_is_told(node: Node) -> None:
    config = "/host/etc/nvidia-container-runtime/config.toml"
    node.run(f"echo 'accept-nvidia-visible-devices-envvar-when-unprivileged = false' > {config}")
    try:
        found = told("toolkit-settings", "and containers get their GPU by the variable there")
    finally:
        node.run(f"rm -f {config}")
    assert found["status"] == "failure"


def test_a_pod_for_which_no_one_gpu_has_room_is_told(place: Place) -> None:
    for name, share in (("a", "0.7"), ("b", "0.7")):
        place.started(pod(share, name=name))
    assert place.create(pod("0.4", name="late")).ok
    assert told("pods-run", f"{place.name}/late is Pending: ")["status"] == "warning"
    fits = told("shares-fit", "and the smallest that waits is 0.4: no one GPU has room for it")
    assert fits["status"] == "warning"


@pytest.mark.parametrize("words", [(), ("--pre",)])
def test_who_has_no_rights_is_told_which_are_missing_and_nothing_is_called_wrong(
    installed: Installation, tmp_path: Path, words: tuple[str, ...]
) -> None:
    with account(installed.cluster, "nobody", tmp_path) as kubeconfig:
        found = shown("doctor", *words, kubeconfig=kubeconfig)
    if words:
        assert (
            "you may not get, create, patch daemonsets"
            in next(one for one in found if one["check"] == "rights")["found"]
        )
    else:
        assert not [one for one in found if one["status"] == "failure"]
        missing = {one["right"] for one in found if one["right"]}
        assert {"list nodes", "get mutatingwebhookconfigurations"} <= missing
