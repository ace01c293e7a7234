"""Each check of `gpu-share doctor` in a cluster in which it fails, and all of them in one in which all is well."""

from collections.abc import Callable
from typing import Any

import pytest

from console.doctor.installation import Installation
from console.doctor.report import AFTER, BEFORE, findings
from console.objects import Metadata, Pod
from console.seen import ALL_NODES, DENIED_PODS, OUR_PODS, SHARED_PODS, Seen, Unseen
from policies.node_state import LEFT_TO_OTHERS, Ages, Fault, Gpu, Use
from tests.console.installations import PARTS, admission_policies, dra, installation, parsed, seen, with_node
from tests.console.objects import GIB, gpu, part, tenant
from tests.console.wrong import (
    of_admission,
    of_exempt,
    of_kubernetes,
    of_narrowed,
    of_nodes,
    of_parts,
    of_policies,
    of_runtimes,
    of_second_places,
    of_trials,
    of_webhook,
    of_workloads,
)
from tests.console.wrong.of_webhook import EXPIRED
from tests.docs.pages import ROOT, anchors
from tests.manifests.admission import BASE

WRONG = [
    *of_kubernetes.WRONG,
    *of_webhook.WRONG,
    *of_policies.WRONG,
    *of_admission.WRONG,
    *of_narrowed.WRONG,
    *of_trials.WRONG,
    *of_second_places.WRONG,
    *of_exempt.WRONG,
    *of_parts.WRONG,
    *of_nodes.WRONG,
    *of_runtimes.WRONG,
    *of_workloads.WRONG,
]
FINE = ("ok", "not-applicable")


def of_earlier_number(**more: Any) -> Gpu:
    """A GPU that is divided into 15 by now, and of which something has 2 of 10."""
    return gpu(tenant("a", 200), parts=1000, vgpus_per_gpu=15, **more)


@pytest.mark.parametrize(("check", "status", "told", "made"), WRONG)
def test_a_check_finds_what_it_is_for(check: str, status: str, told: str, made: Callable[[], Installation]) -> None:
    (found,) = (one for one in findings(made(), AFTER) if one.check == check)
    assert (found.status, told in " ".join(found.found)) == (status, True), found
    assert found.hint or found.status in ("unknown", "not-applicable")


def test_every_check_is_among_these() -> None:
    assert {one[0] for one in WRONG} == {check.name for _, checks in AFTER for check in checks}


def test_where_all_is_well_nothing_is_found() -> None:
    assert [one for one in findings(installation(), AFTER) if one.status not in FINE] == []


def test_what_stays_listed_of_a_node_that_was_shut_down_is_no_fault() -> None:
    left = (one for component in PARTS for one in of_parts.left_over(component))
    made = (part("gpu-0", component) for component in PARTS)
    assert {one.status for one in findings(of_parts.run(*made, *left), AFTER)} <= {*FINE}


def test_where_the_scheduler_allocates_and_has_all_it_needs_nothing_is_found() -> None:
    gates = dict.fromkeys(("DRAExtendedResource", "DRAPartitionableDevices", "DRADeviceTaints"), True)
    found = findings(installation(**dra(), gates=gates), AFTER)
    assert [one for one in found if one.status not in FINE] == []


def test_the_lockdown_is_right_as_it_is_shipped_where_the_namespaces_exist_that_it_exempts() -> None:
    names = ("gpu-operator", "gpu-share", "kube-system", "nvidia-gpu-operator")
    locked = admission_policies([*BASE, *of_admission.LOCKDOWN])
    there = installation(**locked, namespaces=dict.fromkeys(names, Metadata()))
    assert [one for one in findings(there, AFTER) if one.status not in FINE] == []


@pytest.mark.parametrize(
    "security", [{"privileged": True}, {"capabilities": {"add": ["SYS_ADMIN"]}}, {"capabilities": {"add": ["ALL"]}}]
)
def test_a_toolkit_that_is_strict_is_right_for_a_plugin_that_may_name_gpus(security: dict[str, Any]) -> None:
    (found,) = (one for one in findings(of_runtimes.strict(**security), AFTER) if one.check == "toolkit-settings")
    assert found.status == "ok"


def test_what_nobody_can_measure_of_simulated_gpus_is_not_missed() -> None:
    on = with_node(gpu(tenant("a", 2), outsiders=None), driver="simulated", ages=Ages(health=1.0, tenants=2.0))
    found = [one.status for one in findings(on, AFTER) if one.check in ("within-share", "with-share")]
    assert found == ["ok", "ok"]


@pytest.mark.parametrize(("driver", "strategy"), [("simulated", "mps"), ("580.65", "time-slicing")])
def test_where_nothing_is_shared_by_real_mps_it_is_missed_nowhere(driver: str, strategy: str) -> None:
    nodes = with_node(gpu(strategy=strategy), driver=driver).seen.nodes
    made = tuple(parsed(part("gpu-0", component), Pod) for component in PARTS if component != "mps")
    (found,) = (one for one in findings(installation(seen(nodes=nodes, parts=made)), AFTER) if one.check == "parts-run")
    assert found.status == "ok"


def test_who_makes_the_certificates_is_asked_to_make_them_anew() -> None:
    by_cert_manager = seen(parts=tuple(one for one in seen().parts if "-certs-" not in one.metadata.name))
    hints = [
        next(
            one.hint
            for one in findings(installation(on, serving_certificate=b""), AFTER)
            if one.check == "certificates"
        )
        for on in (seen(), by_cert_manager)
    ]
    assert ["deployment/gpu-share-certs" in one for one in hints] == [True, False]
    assert "cert-manager says why" in hints[1]


def test_a_gpu_whose_instances_are_meant_for_others_is_not_left_out() -> None:
    on = with_node(gpu(), skipped=(f"GPU 1 of 2 cannot be shared: GPU-1 is in MIG mode, and {LEFT_TO_OTHERS}",))
    (found,) = (one for one in findings(on, AFTER) if one.check == "gpus-shared")
    assert (found.status, found.found) == ("ok", ())


@pytest.mark.parametrize(("by", "advice"), [("mps", "run fewer processes in it"), ("", "strategy: mps")])
def test_who_takes_more_than_a_limit_of_mps_is_not_told_to_have_one(by: str, advice: str) -> None:
    on = with_node(gpu(tenant("a", 2, use=Use(memory_bytes=60 * GIB)), limits_enforced_by=by))
    (found,) = (one for one in findings(on, AFTER) if one.check == "within-share")
    assert (found.status, advice in str(found.hint)) == ("failure", True)


@pytest.mark.parametrize("of", ["admission_policies", "bindings"])
@pytest.mark.parametrize(("name", "file"), [("claims", "claims"), ("claim-templates", "claims"), ("slices", "slices")])
def test_by_dra_each_policy_of_claims_and_slices_is_needed(name: str, file: str, of: str) -> None:
    made, policy = dra(), f"gpu-share-{name}"
    if of == "bindings":
        made[of] = tuple(one for one in made[of] if one.spec.policy_name != policy)
    else:
        del made[of][policy]
    found, unused = (
        next(one for one in findings(installation(**on), AFTER) if one.check == "admission-policies")
        for on in (made, {of: made[of]})
    )
    (told,) = found.found
    assert (found.status, f"ValidatingAdmissionPolicy {policy}" in told) == ("failure", True)
    assert found.hint.startswith("apply what you installed")
    assert found.hint.endswith(f"kubectl apply -f manifests/overlays/dra/driver/admission-policy-{file}.yaml")
    assert (ROOT / found.hint.rpartition(" ")[2]).is_file()
    assert unused.status == "ok"


@pytest.mark.parametrize(
    "field",
    [
        *("version", "apis", "slices", "webhook", "attempt", "serving_certificate", "policies"),
        *("namespaces", "admission_policies", "bindings"),
    ],
)
def test_what_cannot_be_seen_is_unknown_with_the_right_by_which_it_could(field: str) -> None:
    missing = {field: Unseen(what=field, why="it is forbidden", right="get it")}
    value = {field: None} if field != "policies" else {"policies": None, "policy_problems": None}
    found = [one for one in findings(installation(unseen=missing, **value), AFTER) if one.status not in FINE]
    assert found
    assert {(one.status, one.right) for one in found} == {("unknown", "get it")}


def test_where_nothing_was_seen_no_check_is_in_order() -> None:
    fields = Installation.__struct_fields__
    hidden = tuple(Unseen(what=what, why="it is forbidden") for what in (ALL_NODES, OUR_PODS, SHARED_PODS, DENIED_PODS))
    nothing = Installation(
        seen=Seen(context="here", at="2026-01-01T00:00:00Z", unseen=hidden),
        unseen={field: Unseen(what=field, why="it is forbidden") for field in fields if field not in ("seen", "ready")},
    )
    assert [one.check for one in findings(nothing, AFTER) if one.status != "unknown"] == []


@pytest.mark.parametrize(
    ("argument", "status"),
    [("--gpu-memory-utilization=0.2", "ok"), ("--gpu-memory-utilization=0.3", "warning"), ("--port=80", "warning")],
)
def test_under_time_slicing_a_framework_that_was_told_its_share_keeps_to_it(argument: str, status: str) -> None:
    (found,) = (one for one in findings(of_workloads.sliced(argument), AFTER) if one.check == "within-share")
    assert found.status == status


@pytest.mark.parametrize(
    ("gpus", "told"),
    [
        ((gpu(advertised=10), gpu(index=1, advertised=10)), ()),
        ((of_earlier_number(advertised=14), gpu(index=1, parts=15, vgpus_per_gpu=15, advertised=6)), ()),
        ((of_earlier_number(advertised=13), gpu(index=1, parts=15, advertised=6)), (19,)),
        ((of_earlier_number(), gpu(index=1, parts=15, vgpus_per_gpu=15)), ()),  # an earlier version, which cannot know
        ((gpu(healthy=False, advertised=0), gpu(index=1, advertised=20)), ()),
        ((gpu(healthy=False), gpu(index=1, vgpus_per_gpu=10, hidden=2)), (8,)),
    ],
)
def test_vgpus_of_the_kubelet_are_compared_with_those_that_it_was_told_of(
    gpus: tuple[Gpu, ...], told: tuple[int, ...]
) -> None:
    (found,) = (one for one in findings(with_node(*gpus), AFTER) if one.check == "registered")
    assert found.found == tuple(f"gpu-0 advertises 20 gpu-share.dev/vgpu, and its plugin has {count}" for count in told)


def test_an_expired_certificate_is_no_fault_of_the_policies() -> None:
    found = findings(installation(ready={"gpu-share-webhook-1": EXPIRED}), AFTER)
    assert [one.check for one in found if one.status not in FINE] == ["certificates"]


def test_a_fault_of_mps_is_told_once() -> None:
    fault = Fault(source="mps", why="no daemon", since="2026-01-01T00:00:00Z")
    found = findings(with_node(gpu(healthy=False, faults=(fault,)), gpu(index=1)), AFTER)
    assert [one.check for one in found if "no daemon" in " ".join(one.found)] == ["mps-daemons"]


def test_every_check_leads_to_a_section_of_the_documents() -> None:
    for _, checks in (*AFTER, *BEFORE):
        for check in checks:
            page, _, anchor = check.page.partition("#")
            text = (ROOT / "docs" / page).read_text()
            assert not anchor or anchor in anchors(text), check.page


@pytest.mark.parametrize("name", sorted(dra()["admission_policies"]))
def test_each_policy_of_the_overlay_for_dra_is_looked_for(name: str) -> None:
    kept = {other: one for other, one in dra()["admission_policies"].items() if other != name}
    found = {one.check: one for one in findings(installation(**{**dra(), "admission_policies": kept}), AFTER)}
    assert f"no ValidatingAdmissionPolicy {name}: " in str(found["admission-policies"])


def test_for_a_gpu_that_leaves_mps_nothing_is_to_be_done_to_its_mode() -> None:
    leaving = with_node(gpu(strategy="time-slicing", limits_enforced_by=""), gpu(index=1))
    (found,) = (one for one in findings(leaving, AFTER) if one.check == "compute-mode")
    assert "leaves MPS, nothing until gpu-share mps is replaced" in found.hint
