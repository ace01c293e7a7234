"""Metrics as Prometheus reads them: what each means, and its samples as text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric as Family

from program.http_server import Answer

_COUNTER_SUFFIX: Final = "_total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric, as docs/metrics.md describes it."""

    name: str
    kind: Literal["gauge", "counter", "histogram"] = "gauge"
    meaning: str  # one sentence
    source: str  # where the figure is from
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Histogram:
    """What was observed: how many were at most each bound, cumulative, the last one infinite; and the sum of all."""

    buckets: tuple[tuple[float, int], ...]
    total: float


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of a metric for some labels, in the order of `Metric.labels`."""

    metric: Metric
    labels: tuple[str, ...]
    value: float | Histogram


class _Families:
    """What `generate_latest` asks for."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Sequence[Family]:
        """Give the families, each once."""
        return self._families


def answer(samples: Iterable[Sample]) -> Answer:
    """Write samples as a scraper's answer; of two with the same labels the first counts, or it would reject all."""
    families: dict[str, Family] = {}
    seen: set[tuple[str, tuple[str, ...]]] = set()
    for sample in samples:
        if (identity := (sample.metric.name, sample.labels)) in seen:
            continue
        seen.add(identity)
        family = families.get(sample.metric.name)
        if family is None:
            family = families[sample.metric.name] = _family(sample.metric)
        _add(family, sample)
    text: bytes = generate_latest(_Families([*families.values()]))
    return Answer(text, CONTENT_TYPE_PLAIN_0_0_4)


def _family(metric: Metric) -> Family:
    match metric.kind:
        case "gauge":
            return GaugeMetricFamily(metric.name, metric.meaning, labels=metric.labels)
        case "counter":
            return CounterMetricFamily(metric.name.removesuffix(_COUNTER_SUFFIX), metric.meaning, labels=metric.labels)
        case "histogram":
            return HistogramMetricFamily(metric.name, metric.meaning, labels=metric.labels)


def _add(family: Any, sample: Sample) -> None:
    # A file's name that is no UTF-8 could not be written.
    labels = tuple(label.encode(errors="backslashreplace").decode() for label in sample.labels)
    if isinstance(sample.value, Histogram):
        buckets = [(_bound(bound), count) for bound, count in sample.value.buckets]
        family.add_metric(labels, buckets, sample.value.total)
    else:
        family.add_metric(labels, sample.value)


def _bound(bound: float) -> str:
    return "+Inf" if bound == float("inf") else repr(bound)
