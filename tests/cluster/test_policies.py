"""Policies that change, break and are mended in a running cluster."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cluster.cluster import Cluster, eventually
from tests.cluster.installation import VGPU, Installation
from tests.cluster.pages import commands
from tests.cluster.pods import Place, pod
from tests.cluster.webhooks import all_say, decisions, nobody_says

NAMESPACE = "changing"
BROKEN = "share: {maximum: much}"


@pytest.fixture
def changing(installed: Installation, cluster: Cluster) -> Iterator[Place]:
    """Give a namespace whose policy the test changes."""
    yield Place.make(cluster, NAMESPACE)
    installed.change_policies(changing=None)


@contextmanager
def broken(installed: Installation, cluster: Cluster) -> Iterator[None]:
    """Have a policy file with a mistake in the cluster; afterwards all is well again."""
    installed.change_policies(changing=BROKEN)
    eventually(lambda: all_say(installed.cluster, "changing.yaml"), what="every webhook has read it")
    try:
        yield
    finally:
        installed.change_policies(changing=None)
        for component in ("webhook", "plugin"):
            cluster.run(f"kubectl -n gpu-share delete pod -l app.kubernetes.io/component={component} --wait=false")
        installed.wait_until_ready()
        eventually(lambda: len(installed.pods("webhook")) == 2 and all(map(is_ready, installed.pods("webhook"))))


def is_ready(on: dict[str, dict[str, list[dict[str, object]]]]) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in on["status"].get("conditions", []))


def restarts(installed: Installation, component: str) -> int:
    states = [state for one in installed.pods(component) for state in one["status"].get("containerStatuses", [])]
    return sum(state["restartCount"] for state in states)


def admits(place: Place, share: str) -> bool:
    return place.create(pod(share), dry_run=True).ok


def holds(installed: Installation, *, admitted: str, denied: str, seconds: float = 90) -> None:
    """Wait until every webhook admits the one share and denies the other."""

    def all_do() -> bool:
        said = [decisions(installed.cluster, pod(share), NAMESPACE) for share in (admitted, denied)]
        return said == [{True}, {False}]

    eventually(all_do, seconds=seconds, what=f"{admitted} is admitted, {denied} is denied")


@pytest.mark.usefixtures("changing")
def test_the_command_of_the_page_brings_a_changed_policy_to_the_webhooks_within_seconds(
    installed: Installation, cluster: Cluster
) -> None:
    installed.write_policies(changing='share: {maximum: "0.3"}')
    installed.run("kubectl apply -k policies/files --server-side --force-conflicts")
    (hurry,) = (line for line in commands("operations.md", "Change a policy") if " annotate " in line)
    cluster.run(f"bash -c {shlex.quote(hurry)}")
    holds(installed, admitted="0.3", denied="0.5", seconds=10)


@pytest.mark.usefixtures("changing")
def test_a_changed_policy_holds_without_a_restart(installed: Installation) -> None:
    before = restarts(installed, "webhook")
    eventually(lambda: decisions(installed.cluster, pod("0.5"), NAMESPACE) == {True}, what="0.5 is admitted")
    installed.change_policies(changing='share: {maximum: "0.3"}')
    holds(installed, admitted="0.3", denied="0.5")
    assert restarts(installed, "webhook") == before


def test_a_broken_policy_changes_nothing_until_it_is_mended(installed: Installation, changing: Place) -> None:
    installed.change_policies(changing='share: {maximum: "0.3"}')
    holds(installed, admitted="0.3", denied="0.5")
    installed.change_policies(changing=BROKEN)
    eventually(lambda: all_say(installed.cluster, "changing.yaml"), what="/readyz names the file")
    holds(installed, admitted="0.3", denied="0.5")
    assert admits(changing, "0.3")
    assert not admits(changing, "0.5")
    installed.change_policies(changing='share: {maximum: "0.6"}')
    holds(installed, admitted="0.5", denied="0.7")
    eventually(lambda: nobody_says(installed.cluster, "changing.yaml"), what="/readyz is content")


def test_a_plugin_starts_although_the_policy_file_of_a_namespace_is_broken(
    installed: Installation, cluster: Cluster
) -> None:
    with broken(installed, cluster):
        cluster.run("kubectl -n gpu-share delete pod -l app.kubernetes.io/component=plugin")
        logs = "kubectl -n gpu-share logs -l app.kubernetes.io/component=plugin"
        eventually(
            lambda: restarts(installed, "plugin") or VGPU in cluster.attempt(logs).stdout,
            what="the plugin is registered, or has ended",
        )
        assert restarts(installed, "plugin") == 0


def test_webhooks_that_start_beside_a_broken_policy_file_serve_the_other_namespaces(
    installed: Installation, cluster: Cluster, place: Place
) -> None:
    with broken(installed, cluster):
        cluster.run("kubectl -n gpu-share delete pod -l app.kubernetes.io/component=webhook --grace-period=1")
        eventually(lambda: restarts(installed, "webhook") or is_up(installed, "webhook"), what="new webhooks")
        eventually(lambda: admits(place, "0.2"), what="the API server reaches them, and another namespace is served")
        denied = Place.make(cluster, NAMESPACE).create(pod("0.2"), dry_run=True)
        assert denied.status == 403
        assert "changing.yaml:1" in denied.message


def is_up(installed: Installation, component: str) -> bool:
    pods = installed.pods(component)
    return bool(pods) and all(map(is_ready, pods))
