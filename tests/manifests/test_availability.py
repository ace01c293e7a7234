"""The webhook stays available through updates and drains, and its own installation does not depend on it."""

from pathlib import Path

from certs.passes import LONGEST_PASS_SECONDS
from plugin.mps.timing import TIMING
from policies import contract
from policies.quantity import whole
from tests.command_line import options
from tests.manifests.admission import BASE, NAMESPACE_NAME, policy, selects, stored, webhook_conditions, webhooks
from tests.manifests.installations import each_installation, named
from tests.manifests.render import containers, identity, pod_template, render
from webhook import settings

DEPLOYMENT = named("Deployment", "gpu-share-webhook")
POD = DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
WEBHOOKS = webhooks(BASE)
WEBHOOK = WEBHOOKS[contract.WEBHOOK_NAME]


def test_the_webhook_configuration_has_the_designed_fields() -> None:
    assert {
        field: WEBHOOK[field]
        for field in ("failurePolicy", "timeoutSeconds", "reinvocationPolicy", "sideEffects", "matchPolicy", "rules")
    } == {
        "failurePolicy": "Fail",
        "timeoutSeconds": 3,
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "None",
        "matchPolicy": "Equivalent",
        "rules": [
            {
                "operations": ["CREATE"],
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["pods"],
                "scope": "Namespaced",
            }
        ],
    }


def test_applying_the_manifests_again_does_not_change_the_ca_bundle() -> None:
    # kubectl removes or replaces a field only if the file says it, now or when it was last applied.
    for webhook in WEBHOOKS.values():
        assert "caBundle" not in webhook["clientConfig"]


@each_installation
def test_our_own_pods_start_without_the_webhook(directory: Path) -> None:
    objects = render(directory)
    conditions, admission_policy = webhook_conditions(objects), policy(objects)
    for one in objects:
        template = pod_template(one)
        if template is not None:
            assert not conditions.matches(stored(template)), identity(one)
            assert not admission_policy.matches(stored(template)), identity(one)
    for webhook in WEBHOOKS.values():
        assert not selects(webhook["namespaceSelector"], {NAMESPACE_NAME: contract.NAMESPACE})
        assert not selects(webhook["namespaceSelector"], {NAMESPACE_NAME: "kube-system"})
    assert selects(WEBHOOK["namespaceSelector"], {NAMESPACE_NAME: "team-vision"})


def test_a_drain_or_an_update_leaves_a_replica_running() -> None:
    assert DEPLOYMENT["spec"]["replicas"] == 2
    assert DEPLOYMENT["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    budget = named("PodDisruptionBudget", "gpu-share-webhook")["spec"]
    assert (budget["minAvailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")


def test_replicas_spread_over_hosts_and_zones() -> None:
    constraints = POD["topologySpreadConstraints"]
    assert [one["topologyKey"] for one in constraints] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    assert {one["whenUnsatisfiable"] for one in constraints} == {"ScheduleAnyway"}
    for one in constraints:
        assert one["labelSelector"] == DEPLOYMENT["spec"]["selector"]


def test_a_replica_has_time_to_shut_down_gracefully() -> None:
    wait = CONTAINER["lifecycle"]["preStop"]["sleep"]["seconds"]
    readiness = CONTAINER["readinessProbe"]
    assert wait >= readiness["periodSeconds"] * readiness["failureThreshold"]
    assert POD["terminationGracePeriodSeconds"] > wait + settings.SHUTDOWN_SECONDS + settings.IDLE_SHUTDOWN_SECONDS


def test_probes_request_paths_that_the_webhook_serves() -> None:
    assert CONTAINER["readinessProbe"]["httpGet"] == {"scheme": "HTTPS", "port": "https", "path": "/readyz"}
    assert CONTAINER["livenessProbe"]["httpGet"] == {"scheme": "HTTPS", "port": "https", "path": "/healthz"}


def test_memory_is_limited_and_cpu_is_not() -> None:
    for one in BASE:
        for container in containers(template) if (template := pod_template(one)) else ():
            resources = container["resources"]
            if one["metadata"]["name"] == "gpu-share-mps":
                assert "limits" not in resources  # an OOM kill would end every CUDA context of the node
                continue
            assert resources["limits"].keys() == {"memory"}
            requested, most = (whole(resources[field]["memory"]) for field in ("requests", "limits"))
            assert requested is not None
            assert most is not None
            assert 2 * requested <= most
    (workers,) = (int(one["value"]) for one in CONTAINER["env"] if one["name"] == "GPU_SHARE_WORKERS")
    most = whole(CONTAINER["resources"]["limits"]["memory"])
    assert most is not None
    assert most > (52 << 20) + workers * 4 * settings.MAX_BODY_BYTES


def test_two_plugins_never_advertise_one_resource_at_a_time() -> None:
    plugin = named("DaemonSet", "gpu-share-plugin")
    assert plugin["spec"]["updateStrategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_a_quota_allows_critical_priorities() -> None:
    quota = named("ResourceQuota", "gpu-share-critical")["spec"]
    (scope,) = quota["scopeSelector"]["matchExpressions"]
    used = {template["spec"]["priorityClassName"] for one in BASE if (template := pod_template(one))}
    assert set(scope["values"]) == used == {"system-cluster-critical", "system-node-critical"}


def test_the_mps_daemons_are_updated_only_by_hand() -> None:
    assert named("DaemonSet", "gpu-share-mps")["spec"]["updateStrategy"] == {"type": "OnDelete"}


def test_the_mps_daemons_have_time_to_stop_gracefully() -> None:
    # To stop the daemons, to reset the compute modes, and to publish both.
    needed_seconds = TIMING.end + TIMING.answer + TIMING.publish
    grace_seconds = named("DaemonSet", "gpu-share-mps")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert grace_seconds >= needed_seconds + 5


def test_no_probe_can_kill_the_mps_daemons() -> None:
    (container,) = named("DaemonSet", "gpu-share-mps")["spec"]["template"]["spec"]["containers"]
    assert not {field for field in container if field.endswith("Probe")}


def test_the_plugin_tolerates_the_usual_taints_of_gpu_nodes() -> None:
    tolerated = {
        one["key"] for one in named("DaemonSet", "gpu-share-plugin")["spec"]["template"]["spec"]["tolerations"]
    }
    assert {"nvidia.com/gpu", *contract.DEFAULT_RESOURCE_NAMES.values()} <= tolerated


@each_installation
def test_every_pod_template_can_be_changed_at_any_time(directory: Path) -> None:
    # A Job's cannot: applying another image fails, and after its TTL `kubectl diff` shows a Job that is missing.
    workloads = {
        one["kind"] for one in render(directory) if pod_template(one) or one["kind"] in {"Job", "CronJob", "Pod"}
    }
    assert workloads == {"Deployment", "DaemonSet"}


def test_certificates_are_issued_at_the_start_of_a_pod_and_looked_at_every_five_minutes() -> None:
    (container,) = named("Deployment", "gpu-share-certs")["spec"]["template"]["spec"]["containers"]
    line = [*container["command"], *container["args"]]
    assert line[:3] == ["gpu-share", "certs", "ensure"]
    assert line[line.index("--every-minutes") + 1] == "5"


def test_the_changes_of_a_pass_have_time_to_reach_everyone_within_the_settle_time() -> None:
    (settle_minutes,) = (option.default for of, option in options() if option.name == "settle_minutes")
    assert int(str(settle_minutes)) * 60 >= LONGEST_PASS_SECONDS + 8 * 60
