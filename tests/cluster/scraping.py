"""What the parts of an installation tell a scraper, through the API server's proxy."""

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from tests.cluster.installation import Installation

_PORT = 9406


def samples(installed: Installation, component: str, name: str, **labels: str) -> list[Sample]:
    """Give the samples of the metric *name* with these labels, of every pod of a part."""
    found = []
    for pod in installed.pods(component):
        path = f"/api/v1/namespaces/gpu-share/pods/{pod['metadata']['name']}:{_PORT}/proxy/metrics"
        families = text_string_to_metric_families(installed.cluster.api.get(path))
        found += [one for family in families for one in family.samples if one.name == name]
    return [one for one in found if labels.items() <= one.labels.items()]


def values(installed: Installation, component: str, name: str, **labels: str) -> list[float]:
    """Give their values."""
    return [one.value for one in samples(installed, component, name, **labels)]
