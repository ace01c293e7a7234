"""Privileges, permissions and network access of our own pods: the least that they need."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from policies import contract
from tests.manifests.admission import BASE
from tests.manifests.installations import each_installation
from tests.manifests.render import MANIFESTS, Object, containers, identity, render, templates

PLUGIN = ("DaemonSet", contract.NAMESPACE, "gpu-share-plugin")
MPS = ("DaemonSet", contract.NAMESPACE, "gpu-share-mps")
VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}


def violations_of_restricted(template: Object) -> Iterator[str]:
    """Yield the violations of Pod Security `restricted` in a pod."""
    spec = template["spec"]
    of_pod = spec.get("securityContext", {})
    yield from (field for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field))
    yield from (
        f"volume {kind}" for volume in spec.get("volumes", []) for kind in volume if kind not in VOLUMES | {"name"}
    )
    if "sysctls" in of_pod:
        yield "sysctls"
    if of_pod.get("runAsUser") == 0:
        yield "runAsUser 0"
    for container in containers(template):
        own = container.get("securityContext", {})
        of_both = of_pod | own
        capabilities = own.get("capabilities", {})
        if own.get("runAsUser") == 0:
            yield "runAsUser 0"
        if not of_both.get("runAsNonRoot"):
            yield "runAsNonRoot"
        if of_both.get("seccompProfile", {}).get("type") not in {"RuntimeDefault", "Localhost"}:
            yield "seccompProfile"
        if own.get("allowPrivilegeEscalation") is not False:
            yield "allowPrivilegeEscalation"
        if own.get("privileged") or "procMount" in own:
            yield "privileged"
        if capabilities.get("drop") != ["ALL"] or set(capabilities.get("add", [])) - {"NET_BIND_SERVICE"}:
            yield "capabilities"
        yield from (f"hostPort {port}" for port in container.get("ports", []) if port.get("hostPort"))


@each_installation
def test_all_our_pods_but_the_daemon_sets_meet_restricted(directory: Path) -> None:
    violations = {
        name: set(violations_of_restricted(template)) for name, template in templates(render(directory)).items()
    }
    assert {name for name, found in violations.items() if found} == {PLUGIN, MPS} & violations.keys()
    # The kubelet's directories are on the host, and only root can access them.
    on_host = {"volume hostPath", "runAsUser 0", "runAsNonRoot"}
    assert violations[PLUGIN] == on_host
    for_gpus = {"hostPID", "privileged", "allowPrivilegeEscalation", "capabilities", "seccompProfile"}
    assert violations.get(MPS, on_host | for_gpus) == on_host | for_gpus


@pytest.mark.parametrize(
    ("where", "value", "problem"),
    [
        ("pod", {"hostNetwork": True}, "hostNetwork"),
        ("pod", {"securityContext": {}}, "seccompProfile"),
        ("pod", {"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}, "volume hostPath"),
        ("container", {"securityContext": {}}, "allowPrivilegeEscalation"),
        ("container", {"securityContext": {"capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}}}, "capabilities"),
        ("container", {"ports": [{"hostPort": 1}]}, "hostPort {'hostPort': 1}"),
    ],
)
def test_the_check_of_restricted_finds_each_violation(where: str, value: Object, problem: str) -> None:
    (template,) = (one for name, one in templates(render(MANIFESTS)).items() if name[2] == "gpu-share-webhook")
    assert not list(violations_of_restricted(template))
    (template["spec"] if where == "pod" else template["spec"]["containers"][0]).update(value)
    assert problem in set(violations_of_restricted(template))


@each_installation
def test_every_container_has_a_read_only_root(directory: Path) -> None:
    for template in templates(render(directory)).values():
        for container in containers(template):
            assert container["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize(
    ("name", "writable"),
    [
        (PLUGIN, {"/var/lib/kubelet/device-plugins", "/run/gpu-share", "/var/lib/gpu-share", "/var/run/cdi"}),
        (MPS, {"/tmp/nvidia-mps", "/run/gpu-share", "/var/lib/gpu-share", "/var/log/gpu-share"}),
    ],
)
def test_a_daemon_set_mounts_of_the_host_only_what_it_needs(name: tuple[str, str, str], writable: set[str]) -> None:
    spec = templates(BASE)[name]["spec"]
    (container,) = spec["containers"]
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in spec["volumes"] if "hostPath" in volume}
    read_only = {mount["name"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
    assert {path for volume, path in paths.items() if not read_only[volume]} == writable
    of_plugin = {
        "/etc/cdi",
        "/etc/nvidia-container-runtime",
        "/var/lib/kubelet/plugins/gpu-share.dev",
        "/sys/fs/cgroup",
    }
    of_part = of_plugin if name == PLUGIN else {"/var/log/containers"}
    only_read = {"/var/lib/kubelet/pod-resources"} | of_part
    assert {path for volume, path in paths.items() if read_only[volume]} == only_read


@each_installation
def test_the_namespace_admits_the_daemon_sets(directory: Path) -> None:
    (namespace,) = (one for one in render(directory) if one["kind"] == "Namespace")
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


def is_by_dra(directory: Path) -> bool:
    return directory.name.startswith("dra")


@each_installation
def test_only_the_certificate_jobs_and_the_driver_of_dra_have_permissions(directory: Path) -> None:
    objects = render(directory)
    certs = {"kind": "ServiceAccount", "name": "gpu-share-certs", "namespace": contract.NAMESPACE}
    plugin = certs | {"name": "gpu-share-plugin"}
    bound = [subject for one in objects if one["kind"].endswith("RoleBinding") for subject in one["subjects"]]
    kubelets = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:nodes"}
    drives = [plugin, kubelets] if is_by_dra(directory) else []
    assert sorted(bound, key=str) in (sorted(drives, key=str), sorted([certs, certs, *drives], key=str))
    for name, template in templates(objects).items():
        is_certs = "certs" in name[2]
        has_token = is_certs or (is_by_dra(directory) and name[2] == "gpu-share-plugin")
        assert template["spec"]["automountServiceAccountToken"] is has_token, name
        account = {"kind": "ServiceAccount", "name": template["spec"]["serviceAccountName"]}
        assert (account["name"] == certs["name"]) is is_certs
        assert any(identity(one) == ("ServiceAccount", contract.NAMESPACE, account["name"]) for one in objects)


def test_the_certificate_jobs_can_access_two_secrets_and_one_webhook_configuration() -> None:
    role, cluster_role = (_role(kind, "gpu-share-certs") for kind in ("Role", "ClusterRole"))
    by_name, making = role["rules"]
    assert by_name["resources"] == making["resources"] == ["secrets"]
    assert set(by_name["resourceNames"]) == {contract.SERVING_SECRET, contract.CA_SECRET}
    assert set(by_name["verbs"]) == {"get", "patch"}
    assert making["verbs"] == ["create"]
    (rule,) = cluster_role["rules"]
    assert rule == {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations"],
        "resourceNames": [contract.WEBHOOK_CONFIGURATION],
        "verbs": ["get", "patch"],
    }


def _role(kind: str, name: str) -> Object:
    (found,) = (one for one in BASE if one["kind"] == kind and one["metadata"]["name"] == name)
    return found


def test_who_looks_at_shares_reads_no_secret_and_reaches_no_pods_but_ours() -> None:
    (everywhere,) = _role("ClusterRole", "gpu-share-viewer")["rules"]
    assert everywhere == {"apiGroups": [""], "resources": ["nodes", "pods", "events"], "verbs": ["list"]}
    of_ours = _role("Role", "gpu-share-viewer")
    assert of_ours["metadata"]["namespace"] == contract.NAMESPACE
    assert of_ours["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]},
        {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]},
    ]


def test_the_key_of_the_ca_is_in_no_pod() -> None:
    for template in templates(BASE).values():
        for volume in template["spec"].get("volumes", []):
            assert volume.get("secret", {}).get("secretName") != contract.CA_SECRET


@each_installation
def test_no_pod_gets_the_variables_of_our_services(directory: Path) -> None:
    # GPU_SHARE_WEBHOOK_PORT=tcp://... would be read as an option.
    for name, template in templates(render(directory)).items():
        assert template["spec"]["enableServiceLinks"] is False, name


# A cluster accepts them even where its network enforces none, so they are compared here and tried nowhere.
SCRAPERS = [{"namespaceSelector": {"matchLabels": {contract.SCRAPER_LABEL: "true"}}}]
TO_METRICS = {"from": SCRAPERS, "ports": [{"port": "metrics", "protocol": "TCP"}]}
TO_STATE = {"ports": [{"port": "state", "protocol": "TCP"}]}
INGRESS = {
    "gpu-share-webhook": [{"ports": [{"port": "https", "protocol": "TCP"}]}, TO_METRICS],
    "gpu-share-certs": [TO_METRICS],
    "gpu-share-plugin": [TO_METRICS, TO_STATE],
    "gpu-share-mps": [TO_METRICS, TO_STATE],
}


@each_installation
def test_network_policies_admit_scrapers_by_label_and_to_the_webhook_and_to_state_everybody(directory: Path) -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in render(directory) if one["kind"] == "NetworkPolicy"}
    assert {name: spec["ingress"] for name, spec in policies.items()} == {name: INGRESS[name] for name in policies}
    for spec in policies.values():
        assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert {name for name, spec in policies.items() if "egress" in spec} <= {
        "gpu-share-certs",
        *(["gpu-share-plugin"] if is_by_dra(directory) else []),
    }


@each_installation
def test_every_pod_of_ours_has_a_network_policy_and_the_ports_that_it_opens(directory: Path) -> None:
    objects = render(directory)
    policies = {one["metadata"]["name"]: one["spec"] for one in objects if one["kind"] == "NetworkPolicy"}
    for (_, _, name), template in templates(objects).items():
        ports = {port["name"] for container in containers(template) for port in container.get("ports", [])}
        assert ports == {rule["ports"][0]["port"] for rule in policies[name]["ingress"]}


@pytest.mark.parametrize("name", [PLUGIN, MPS], ids=["plugin", "mps"])
def test_who_asks_for_the_state_has_to_know_the_uid_of_the_pod(name: tuple[str, str, str]) -> None:
    (container,) = templates(BASE)[name]["spec"]["containers"]
    variables = {one["name"]: one.get("value", one.get("valueFrom")) for one in container["env"]}
    ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
    assert variables["GPU_SHARE_POD_UID"] == {"fieldRef": {"fieldPath": "metadata.uid"}}
    assert variables["GPU_SHARE_METRICS_BIND"] == f"[::]:{ports['metrics']}"
    assert variables["GPU_SHARE_STATE_BIND"] == f"[::]:{ports['state']}"
