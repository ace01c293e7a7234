import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import kubernetes_validate
import pytest
import yaml

from policies import contract
from policies.reading.store import load
from tests.command_line import options
from tests.manifests.admission import BASE, webhooks
from tests.manifests.installations import each_installation, named
from tests.manifests.quantities import kept
from tests.manifests.render import MANIFESTS, OVERLAYS, ROOT, Object, containers, identity, render, templates

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
SHIPPED = ROOT / "policies" / "files"
NOT_OF_KUBERNETES = {"Certificate", "Issuer"}
# Read by NVIDIA's container runtime, not by gpu-share.
OF_OTHERS = {"NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "MALLOC_MMAP_THRESHOLD_"}


def supported_minors() -> tuple[str, str]:
    """Return the oldest and the newest Kubernetes with schemas of admission policies, our newest kind."""
    having = []
    for minor in kubernetes_validate.utils.all_versions():
        with suppress(kubernetes_validate.SchemaNotFoundError):
            kubernetes_validate.validate(named("ValidatingAdmissionPolicyBinding", "gpu-share"), minor)
            having.append(minor)
    return having[0], having[-1]


OLDEST, NEWEST = supported_minors()


def test_the_oldest_kubernetes_is_the_one_that_the_documents_name() -> None:
    assert OLDEST.startswith("1.30.")
    assert "Kubernetes 1.30" in (ROOT / "docs" / "install.md").read_text()


@pytest.mark.parametrize("minor", [OLDEST, NEWEST])
def test_every_object_is_valid(minor: str) -> None:
    different: list[Object] = []
    for directory in (MANIFESTS, *OVERLAYS):
        if minor != OLDEST or not directory.name.startswith("dra"):  # which needs Kubernetes 1.36
            different += [one for one in render(directory) if one not in different]
    for one in different:
        if one["kind"] not in NOT_OF_KUBERNETES:
            kubernetes_validate.validate(one, minor, strict=True)


def test_a_misspelt_field_is_invalid() -> None:
    wrong = named("Service", contract.WEBHOOK_SERVICE) | {"spce": {}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, NEWEST, strict=True)


@each_installation
def test_no_object_says_what_the_api_server_leaves_out(directory: Path) -> None:
    # It stores no empty list, so that each `kubectl diff` would show one, and each apply would be a change.
    for one in render(directory):
        assert [] not in list(values(one)), identity(one)


@each_installation
def test_every_quantity_is_written_as_the_api_server_keeps_it(directory: Path) -> None:
    objects = render(directory)
    found = [quantity for one in objects for quantity in quantities(one)]
    assert len(found) > len(templates(objects))
    assert [str(one) for one in found if kept(one) != str(one)] == []


def quantities(node: object) -> Iterator[Any]:
    for name, child in node.items() if isinstance(node, dict) else ():
        if name in {"requests", "limits", "hard"}:
            yield from child.values()
        elif name == "sizeLimit":
            yield child
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from quantities(child)


def values(node: object) -> Iterator[object]:
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield child
        yield from values(child)


@each_installation
def test_names_are_those_of_the_contract(directory: Path) -> None:
    objects = render(directory)
    assert named("Namespace", contract.NAMESPACE, objects)
    assert {one["metadata"].get("namespace", contract.NAMESPACE) for one in objects} == {contract.NAMESPACE}
    assert named("Service", contract.WEBHOOK_SERVICE, objects)
    found = named("MutatingWebhookConfiguration", contract.WEBHOOK_CONFIGURATION, objects)["webhooks"]
    assert tuple(webhook["name"] for webhook in found) == contract.WEBHOOK_NAMES
    for webhook in found:
        service = webhook["clientConfig"]["service"]
        assert (service["name"], service["namespace"]) == (contract.WEBHOOK_SERVICE, contract.NAMESPACE)
    deployed = templates(objects)["Deployment", contract.NAMESPACE, "gpu-share-webhook"]
    (secret,) = (volume["secret"] for volume in deployed["spec"]["volumes"] if "secret" in volume)
    assert secret["secretName"] == contract.SERVING_SECRET
    plugin = templates(objects)["DaemonSet", contract.NAMESPACE, "gpu-share-plugin"]
    assert plugin["spec"]["nodeSelector"] == {contract.NODE_LABEL: "true"}


@each_installation
def test_every_object_carries_the_standard_labels(directory: Path) -> None:
    objects = render(directory)
    carriers = [(identity(one), one["metadata"]) for one in objects]
    carriers += [(name, template["metadata"]) for name, template in templates(objects).items()]
    for name, metadata in carriers:
        labels = {
            key.removeprefix("app.kubernetes.io/"): value
            for key, value in metadata["labels"].items()
            if key.startswith("app.kubernetes.io/")
        }
        component = labels.pop("component", None)
        assert labels == {
            "name": "gpu-share",
            "part-of": "gpu-share",
            "managed-by": "kustomize",
            "version": VERSION,
        }, name
        assert component in {None, "webhook", "plugin", "mps", "certs", "console"}, name


@each_installation
def test_every_selector_selects_the_pods_of_its_component_only(directory: Path) -> None:
    objects = render(directory)
    pods = {
        name: {key: value for key, value in template["metadata"]["labels"].items() if "version" not in key}
        for name, template in templates(objects).items()
    }
    for one in objects:
        if one["kind"] in {"Deployment", "DaemonSet", "PodDisruptionBudget"}:
            selector = one["spec"]["selector"]["matchLabels"]
        elif one["kind"] == "NetworkPolicy":
            selector = one["spec"]["podSelector"]["matchLabels"]
        elif one["kind"] == "Service":
            selector = one["spec"]["selector"]
        else:
            continue
        found = {
            labels["app.kubernetes.io/component"] for labels in pods.values() if selector.items() <= labels.items()
        }
        assert found == {one["metadata"]["labels"]["app.kubernetes.io/component"]}, identity(one)


@each_installation
def test_every_image_is_ours_with_the_version_of_the_project(directory: Path) -> None:
    for template in templates(render(directory)).values():
        for container in containers(template):
            assert container["image"] == f"gpu-share:{VERSION}"


@each_installation
def test_every_variable_is_an_option_of_the_command_that_gets_it(directory: Path) -> None:
    for name, template in templates(render(directory)).items():
        for container in containers(template):
            told = {variable["name"] for variable in container.get("env", [])} - OF_OTHERS
            if container["command"][0] != "gpu-share":
                assert not told, name
                continue
            known, given = command(container)
            assert told <= {str(option.envvar) for option in known}, name
            arguments = [one for one in container.get("args", []) if one.startswith("--")]
            assert set(arguments) <= {text for option in known for text in option.opts}, name
            missing = {option.name for option in known if option.required and option.envvar not in told}
            assert not missing, f"{name}: {given} needs {missing}"


def command(container: Object) -> tuple[list[click.Option], str]:
    words = " ".join(container["command"])
    return [option for of, option in options() if of == words], words


@each_installation
def test_every_mount_has_its_volume_and_every_volume_a_mount(directory: Path) -> None:
    for name, template in templates(render(directory)).items():
        mounted = {mount["name"] for container in containers(template) for mount in container.get("volumeMounts", [])}
        assert mounted == {volume["name"] for volume in template["spec"].get("volumes", [])}, name


def test_files_that_options_name_are_in_volumes() -> None:
    for name in ("gpu-share-webhook", "gpu-share-plugin", "gpu-share-mps"):
        kind = "Deployment" if name.endswith("webhook") else "DaemonSet"
        (container,) = containers(templates(BASE)[kind, contract.NAMESPACE, name])
        places = {mount["mountPath"] for mount in container["volumeMounts"]}
        files = {one["value"] for one in container["env"] if one.get("value", "").startswith("/")}
        assert files
        assert all(path in places or str(Path(path).parent) in places for path in files)


def test_the_shipped_policies_and_the_selectors_exempt_the_same_namespaces() -> None:
    wanted = {*load(SHIPPED).cluster.exempt_namespaces, contract.NAMESPACE}
    selectors = [webhook["namespaceSelector"] for webhook in webhooks(BASE).values()]
    selectors += [
        one["spec"]["matchConstraints"]["namespaceSelector"]
        for one in BASE
        if one["kind"] == "ValidatingAdmissionPolicy"
    ]
    assert len(selectors) == 5
    for selector in selectors:
        expression, *others = selector["matchExpressions"]
        assert {one["key"] for one in others} <= {"pod-security.kubernetes.io/enforce"}
        assert (expression["key"], expression["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
        assert set(expression["values"]) == wanted


def test_ports_agree_from_the_webhook_configuration_to_the_process() -> None:
    (port,) = named("Service", contract.WEBHOOK_SERVICE)["spec"]["ports"]
    (container,) = containers(templates(BASE)["Deployment", contract.NAMESPACE, "gpu-share-webhook"])
    opened, metrics = container["ports"]
    environment = {one["name"]: one.get("value") for one in container["env"]}
    for name, webhook in webhooks(BASE).items():
        restricted = name == contract.RESTRICTED_WEBHOOK_NAME
        assert webhook["clientConfig"]["service"] == {
            "name": contract.WEBHOOK_SERVICE,
            "namespace": contract.NAMESPACE,
            "path": contract.MUTATE_RESTRICTED_PATH if restricted else contract.MUTATE_PATH,
            "port": port["port"],
        }
    assert port["targetPort"] == opened["name"]
    assert environment["GPU_SHARE_BIND"] == f"[::]:{opened['containerPort']}"
    assert environment["GPU_SHARE_METRICS_BIND"].rpartition(":")[2] == str(metrics["containerPort"])
    (of_all,), (of_scrapers,) = (
        rule["ports"] for rule in named("NetworkPolicy", "gpu-share-webhook")["spec"]["ingress"]
    )
    assert (of_all["port"], of_scrapers["port"]) == (opened["name"], metrics["name"])


def test_the_file_modes_are_octal() -> None:
    written: list[Any] = list(yaml.safe_load_all((MANIFESTS / "base" / "webhook.yaml").read_text()))
    (deployment,) = (one for one in written if one["kind"] == "Deployment")
    (secret,) = (v["secret"] for v in deployment["spec"]["template"]["spec"]["volumes"] if "secret" in v)
    assert secret["defaultMode"] == 0o440
