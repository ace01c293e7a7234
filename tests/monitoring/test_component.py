"""The component for Prometheus, as kustomize adds it."""

import json
from pathlib import Path

import pytest
import yaml

from policies.contract import SCRAPER_LABEL
from tests.manifests.render import MANIFESTS, ROOT, Object, containers, identity, render, templates


@pytest.fixture
def added(tmp_path: Path) -> list[Object]:
    """Render the installation with the component."""
    (tmp_path / "gpu-share").symlink_to(ROOT)
    kustomization = {
        "resources": ["gpu-share/manifests"],
        "components": ["gpu-share/manifests/components/monitoring"],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    plain = {identity(one) for one in render(MANIFESTS)}
    return [one for one in render(tmp_path) if identity(one) not in plain]


def test_it_adds_a_pod_monitor_rules_and_a_dashboard_that_the_sidecar_of_grafana_finds(added: list[Object]) -> None:
    by_kind = {one["kind"]: one for one in added}
    assert sorted(by_kind) == ["ConfigMap", "PodMonitor", "PrometheusRule"]
    assert by_kind["ConfigMap"]["metadata"]["labels"]["grafana_dashboard"] == "1"
    ((name, text),) = by_kind["ConfigMap"]["data"].items()
    assert (name, json.loads(text)["uid"]) == ("gpu-share.json", "gpu-share")
    assert {one["metadata"]["namespace"] for one in added} == {"gpu-share"}


def test_the_pod_monitor_finds_the_port_of_each_part(added: list[Object]) -> None:
    (monitor,) = (one["spec"] for one in added if one["kind"] == "PodMonitor")
    (endpoint,) = monitor["podMetricsEndpoints"]
    assert endpoint["honorLabels"] is True
    found = {
        name[2]
        for name, template in templates(render(MANIFESTS)).items()
        if monitor["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
        and endpoint["port"] in {port["name"] for one in containers(template) for port in one.get("ports", [])}
    }
    assert found == {"gpu-share-plugin", "gpu-share-mps", "gpu-share-webhook", "gpu-share-certs"}


def test_the_documents_name_the_label_by_which_scrapers_are_admitted() -> None:
    assert f"{SCRAPER_LABEL}=true" in (ROOT / "docs" / "metrics.md").read_text()
