"""
The generated parts of the documents: `python -m tests.docs.generate` writes them, `--check` says if one is out of date.

They stand between the comments `<!-- name -->` and `<!-- end of name -->`. The outputs in console blocks are those of
the commands above them.
"""

import logging
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial

from certs import metrics as certs_metrics
from plugin.telemetry.metrics import MPS_METRICS, PLUGIN_METRICS
from policies.frameworks.catalogue import BUILT_IN
from policies.reading.reference import framework_table, table
from tests.docs import cluster, explained, shown
from tests.docs.metrics_tables import metrics_table
from tests.docs.pages import PAGES, name, with_outputs
from webhook import metrics as webhook_metrics
from webhook.preview.kinds import kinds_table

PARTS: Mapping[str, Callable[[], str]] = {
    "policy fields": partial(table, "Policy"),
    "cluster fields": partial(table, "Cluster"),
    "framework fields": partial(table, "Framework"),
    "frameworks": partial(framework_table, BUILT_IN),
    "kinds": kinds_table,
    "denied pod": shown.denied_pod,
    "pod without a grant": shown.pod_without_a_grant,
    "fragmented pod": shown.fragmented_pod,
    "status of a node": shown.status_of_a_node,
    "metrics of the plugin": partial(metrics_table, PLUGIN_METRICS),
    "metrics of mps": partial(metrics_table, MPS_METRICS),
    "metrics of the webhook": partial(metrics_table, webhook_metrics.METRICS),
    "metrics of the certificates": partial(metrics_table, certs_metrics.METRICS),
    "top": cluster.top,
    "doctor": cluster.doctor,
    "explain": explained.waiting,
    "explain a pod that waits": explained.why_it_waits,
    "explain a denial": explained.denied,
    "explain a tenant": explained.running,
    "explain a failed pod": explained.failed,
    "explain a fault": explained.beside_a_fault,
}
_PART = re.compile(r"^<!-- ([a-z ]+) -->\n(.*?)^<!-- end of \1 -->$", re.DOTALL | re.MULTILINE)
_TIMES = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\b\d+ ?s(?= ago)")


def generated(text: str) -> str:
    """Write the generated parts of a page anew."""
    return with_outputs(_PART.sub(_part, text))


def timeless(text: str) -> str:
    """Leave out the times, which are others at each run."""
    return _TIMES.sub("", text)


def _part(found: re.Match[str]) -> str:
    part, written = found.groups()
    new = f"{PARTS[part]()}\n"
    return f"<!-- {part} -->\n{written if timeless(new) == timeless(written) else new}<!-- end of {part} -->"


def main() -> int:
    logging.disable()  # the fragmented pod is denied here
    outdated = {page: text for page in PAGES if (text := generated(page.read_text())) != page.read_text()}
    if "--check" in sys.argv[1:]:
        if outdated:
            sys.stderr.write(f"out of date: {', '.join(map(name, outdated))}: run make documents\n")
        return bool(outdated)
    for page, text in outdated.items():
        page.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
