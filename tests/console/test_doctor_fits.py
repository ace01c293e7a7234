"""Whether `gpu-share doctor` says of what waits that no one GPU has room for it, and of nothing else."""

import json

import pytest

from console.doctor.report import AFTER, findings
from tests.console.installations import installation, nodes, pods, policies, seen
from tests.console.objects import gpu, pending, pod, state, tenant


@pytest.mark.parametrize("check", ["shares-fit", "numbers-agree"])
def test_a_pod_whose_image_comes_waits_for_no_share(check: str) -> None:
    node = nodes(state(gpu(tenant("pulls", 5), tenant("a", 2)), gpu(tenant("b", 7), index=1), on="gpu-0"))
    twenty = policies("vgpusPerGpu: 20\n")
    on_node = pod("pulls", "0.5", on="gpu-0", phase="Pending")
    for waits, status in ((on_node, "ok"), (pending("late", "0.5", ""), "warning")):
        on = installation(seen(**node, **pods(waits)), **twenty)
        (found,) = (one for one in findings(on, AFTER) if one.check == check)
        assert found.status == status


@pytest.mark.parametrize("other", [{"strategy": "partition"}, {"resource": "gpu-share.dev/vgpu-model-t4"}])
def test_a_share_that_waits_for_other_gpus_is_no_matter_of_these(other: dict[str, str]) -> None:
    waits = pending("late", "0.5", "")
    grant = json.loads(waits["metadata"]["annotations"]["gpu-share.dev/grant"])
    waits["metadata"]["annotations"]["gpu-share.dev/grant"] = json.dumps(grant | other)
    node = nodes(state(gpu(tenant("a", 7)), gpu(tenant("b", 7), index=1), on="gpu-0"))
    on = installation(seen(**node, **pods(waits)))
    (found,) = (one for one in findings(on, AFTER) if one.check == "shares-fit")
    assert found.status == "ok"


@pytest.mark.parametrize(("models", "status"), [(("gpu", "gpu", "t4"), "ok"), (("t4", "t4", "gpu"), "warning")])
def test_by_dra_a_share_that_waits_is_judged_by_gpus_of_its_device(models: tuple[str, ...], status: str) -> None:
    waits = pending("late", "0.5", "")
    grant = json.loads(waits["metadata"]["annotations"]["gpu-share.dev/grant"])
    of_t4 = {"main": {"resource": "gpu-share.dev/share-500m-model-t4", "share": "0.5"}}
    by_dra = {"allocation": "dra", "resource": "", "containers": of_t4}
    waits["metadata"]["annotations"]["gpu-share.dev/grant"] = json.dumps(grant | by_dra)
    free = zip((3, 3, 0), models, strict=True)
    made = [
        gpu(tenant("a", 10 - left), index=index, resource="", allocation="dra", device=device)
        for index, (left, device) in enumerate(free)
    ]
    on = installation(seen(**nodes(state(*made, on="gpu-0")), **pods(waits)))
    (found,) = (one for one in findings(on, AFTER) if one.check == "shares-fit")
    assert (found.status, "DRA" in str(found.hint)) == (status, False)
