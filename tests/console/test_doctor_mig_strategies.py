"""What `gpu-share doctor` takes for GPUs by the strategy for MIG of NVIDIA's plugin, where it leaves it some."""

import pytest

from console.doctor.installation import Installation
from console.doctor.report import AFTER, findings
from tests.console.test_doctor_other_plugins import BESIDE, ONCE, SEVENTH, found, judged, of

_STRATEGY = "nvidia.com/mig.strategy"


@pytest.mark.parametrize("rules", [(), ("{indexes: [1], offer: none}",)])
@pytest.mark.parametrize(
    ("amount", "strategy", "status"),
    [
        (1, "", "ok"),  # by feature discovery, which has no label for none
        (2, "", "warning"),
        (7, "single", "ok"),
        (8, "single", "warning"),
        (1, "mixed", "warning"),
    ],
)
def test_instances_that_are_left_to_others_may_be_called_gpus_by_one_strategy(
    rules: tuple[str, ...], amount: int, strategy: str, status: str
) -> None:
    labels = {**ONCE, _STRATEGY: strategy} if strategy else ONCE
    on = of({"nvidia.com/gpu": str(amount)}, *rules, labels=labels, left_to_others=0, skipped=(BESIDE,))
    assert judged(on) == status


def test_where_no_label_says_the_strategy_a_gpu_may_be_one_that_is_shared() -> None:
    def has(amount: str, *rules: str, left: int, **more: str) -> Installation:
        return of({"nvidia.com/gpu": amount, **more}, *rules, left_to_others=left, skipped=(BESIDE,))

    doubt = "nobody knows whether the 1 nvidia.com/gpu of gpu-0 are of GPUs that are shared"
    (one,) = (one for one in findings(has("1", left=0), AFTER) if one.check == "other-plugins")
    assert (one.status, one.found) == ("unknown", (doubt,))
    assert judged(has("1", SEVENTH, left=1)) == "ok"  # by each strategy
    assert judged(has("2", SEVENTH, left=1)) == "unknown"


@pytest.mark.parametrize("labels", [{}, ONCE, {_STRATEGY: "single"}])
def test_who_has_a_resource_for_each_profile_calls_nothing_in_mig_mode_a_gpu(labels: dict[str, str]) -> None:
    on = of({"nvidia.com/gpu": "1", "nvidia.com/mig-3g.40gb": "2"}, labels=labels, left_to_others=0, skipped=(BESIDE,))
    assert found(on) == ("gpu-0 advertises nvidia.com/gpu too",)


@pytest.mark.parametrize(
    ("product", "status"),
    [("NVIDIA-H100-MIG-1g.10gb", "ok"), ("NVIDIA-H100-MIG-INVALID", "unknown"), ("NVIDIA-H100", "warning")],
)
def test_by_the_strategy_single_the_product_says_whether_gpus_are_instances(product: str, status: str) -> None:
    labels = {**ONCE, _STRATEGY: "single", "nvidia.com/gpu.product": product}
    assert judged(of({"nvidia.com/gpu": "7"}, labels=labels, left_to_others=0, skipped=(BESIDE,))) == status
