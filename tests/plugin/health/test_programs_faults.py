import pytest

from plugin.errors import TenantsError
from plugin.gpus.gpu import VGpuId
from plugin.health.state import read_node_health
from plugin.pod_resources.tenants import Tenant
from tests.plugin.health.reconciler_bench import FIRST, SECOND, Bench, Lines


def holder(pod: str, *uuids: str) -> Tenant:
    return Tenant(namespace="team", pod=pod, container="main", vgpus=tuple(VGpuId(uuid, 0) for uuid in uuids))


def test_a_programs_fault_names_those_on_the_gpu_and_is_remembered(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.tenants = (holder("a", FIRST), holder("b", SECOND), holder("c", FIRST, SECOND))
    bench.look(bench.probe())
    bench.look(*[bench.xid(FIRST, 31)] * 3)
    line = vars(caplog.records[-1])
    assert (line["message"], line["gpu"], line["xid"], line["times"]) == ("application fault on a GPU", FIRST, 31, 3)
    assert line["tenants"] == ("team/a/main", "team/c/main")
    health = read_node_health(bench.directory)
    assert health is not None
    remembered = health.gpus[0].application_fault
    assert remembered is not None
    assert (remembered.xid, remembered.tenants) == (31, ("team/a/main", "team/c/main"))


def test_a_program_that_fails_all_the_time_is_a_line_a_minute_and_a_question_each(
    bench: Bench, lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    bench.look(bench.probe())
    for _ in range(180):
        bench.look(bench.probe(), bench.xid(FIRST, 31))
    assert lines() == [("application fault on a GPU", FIRST)] * 3
    assert bench.tenant_questions == 3
    assert [vars(record)["times"] for record in caplog.records] == [1, 60, 60]


def test_a_programs_fault_of_another_gpu_is_told_at_once(bench: Bench, lines: Lines) -> None:
    bench.look(bench.probe())
    bench.look(bench.xid(FIRST, 31))
    bench.look(bench.xid(SECOND, 31))
    assert lines() == [("application fault on a GPU", FIRST), ("application fault on a GPU", SECOND)]


def test_a_kubelet_that_does_not_answer_keeps_no_fault_from_the_log(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.tenants = TenantsError("no kubelet")
    bench.look(bench.probe())
    bench.look(bench.xid(FIRST, 31))
    assert (vars(caplog.records[-1])["tenants"], vars(caplog.records[-1])["tenants_unknown"]) == ((), "no kubelet")
