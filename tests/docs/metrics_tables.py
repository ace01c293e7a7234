"""The metrics of each part, as a table of docs/metrics.md."""

from collections.abc import Iterable, Iterator

from program.metrics import Metric


def metrics_table(metrics: Iterable[Metric]) -> str:
    return "\n".join(["| metric | what it means | labels | from |", "| --- | --- | --- | --- |", *_rows(metrics)])


def _rows(metrics: Iterable[Metric]) -> Iterator[str]:
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels) or "none"
        yield f"| `{metric.name}` ({metric.kind}) | {metric.meaning} | {labels} | {metric.source} |"
