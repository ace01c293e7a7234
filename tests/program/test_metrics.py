"""Samples as Prometheus reads them."""

from math import inf

import pytest
from prometheus_client.parser import text_string_to_metric_families

from program.metrics import Histogram, Metric, Sample, answer

FREE = Metric(name="gpu_share_free", meaning="What is free.", source="here", labels=("node", "pod"))
REVIEWS = Metric(name="gpu_share_reviews_total", kind="counter", meaning="Reviews.", source="here", labels=("code",))
SECONDS = Metric(name="gpu_share_review_seconds", kind="histogram", meaning="How long.", source="here")


def read(*samples: Sample) -> dict[tuple[str, tuple[str, ...]], float]:
    text = answer(samples).body.decode()
    return {
        (one.name, tuple(one.labels.values())): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def test_each_kind_is_read_back_by_a_parser_of_prometheus() -> None:
    observed = Histogram(((0.001, 3), (inf, 4)), 0.5)
    assert read(Sample(FREE, ("a", "b"), 0.5), Sample(REVIEWS, ("x",), 7), Sample(SECONDS, (), observed)) == {
        ("gpu_share_free", ("a", "b")): 0.5,
        ("gpu_share_reviews_total", ("x",)): 7,
        ("gpu_share_review_seconds_bucket", ("0.001",)): 3,
        ("gpu_share_review_seconds_bucket", ("+Inf",)): 4,
        ("gpu_share_review_seconds_count", ()): 4,
        ("gpu_share_review_seconds_sum", ()): 0.5,
    }


@pytest.mark.parametrize("hostile", ['"} 1\nother 2\n', "\\", "a\nb", "é", ""])
def test_a_label_is_a_label_whatever_stands_in_it(hostile: str) -> None:
    assert read(Sample(FREE, (hostile, "b"), 1)) == {("gpu_share_free", (hostile, "b")): 1}


def test_a_label_that_is_no_utf_8_is_escaped() -> None:
    assert read(Sample(FREE, ("a\udcff", "b"), 1)) == {("gpu_share_free", ("a\\udcff", "b")): 1}


def test_of_two_samples_with_the_same_labels_the_first_counts() -> None:
    # Prometheus rejects a scrape in which one comes twice.
    assert read(Sample(FREE, ("a", "b"), 1), Sample(FREE, ("a", "b"), 2)) == {("gpu_share_free", ("a", "b")): 1}


def test_what_has_no_sample_is_not_there() -> None:
    assert answer([]).body == b""
