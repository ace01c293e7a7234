import shutil
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from threading import Thread

import pytest

from plugin.errors import ThreadsError
from plugin.gpus.gpu import Gpu, VGpuId, label_of
from plugin.mps.compute_mode import ComputeModes
from plugin.mps.daemon_supervisor import DaemonSupervisor, SupervisorContext
from plugin.mps.supervisor import Supervisor
from plugin.pod_resources.tenancy import Tenancy
from plugin.presence import alone
from plugin.shares.parts_file import Held, parts, write_parts
from policies.policy_set import PolicySet
from policies.reading.store import load
from tests.plugin.mps.conftest import UUID
from tests.plugin.mps.fake_modes import FakeModes, FakeNvmlError
from tests.plugin.mps.standin import StandIn
from tests.plugin.mps.supervised import said
from tests.plugin.mps.tenants import RESOURCE, Claimed, claimed, held, kubelet
from tests.plugin.waiting import wait_until

Allow = Callable[..., PolicySet]


@pytest.fixture
def allow(root: Path) -> Allow:
    directory = root / "policies"
    directory.mkdir()

    def allow(maximum: str, *, vgpus_per_gpu: int = 10) -> PolicySet:
        """Give policies with which no container has more than that."""
        (directory / "_cluster.yaml").write_text(f"vgpusPerGpu: {vgpus_per_gpu}\n")
        (directory / "_default.yaml").write_text(f'share: {{maximum: "{maximum}"}}\n')
        return load(directory)

    return allow


@pytest.fixture
def supervisor(gpu: Gpu, context: SupervisorContext) -> DaemonSupervisor:
    return DaemonSupervisor(gpu, context)


@pytest.fixture
def node(root: Path, context: SupervisorContext, supervisor: DaemonSupervisor) -> Supervisor:
    tenancy = Tenancy(root / "kubelet", lambda: [RESOURCE], bindings=context.parts.bindings)
    node = Supervisor(replace(context, tenancy=tenancy))
    node._supervisors[UUID] = supervisor
    return node


def is_held(node: Supervisor) -> bool:
    return bool(node._in_use.held(frozenset({UUID})))


def test_while_tenants_are_unknown_the_ceiling_rises_with_the_policies_and_does_not_fall(
    node: Supervisor, supervisor: DaemonSupervisor, allow: Allow
) -> None:
    supervisor.ceiling = Fraction(3, 10)
    node.set_ceilings(allow("0.5"))
    assert supervisor.ceiling == Fraction(5, 10)
    node.set_ceilings(allow("0.2"))
    assert supervisor.ceiling == Fraction(5, 10)


def test_it_is_whole_at_the_start_and_falls_once_tenants_are_known(
    node: Supervisor, supervisor: DaemonSupervisor, allow: Allow, root: Path
) -> None:
    node.set_ceilings(allow("0.2"))
    assert supervisor.ceiling == Fraction(10, 10)
    with kubelet(root / "kubelet", held("team/a", UUID, vgpus=3), held("team/b", UUID, vgpus=4)):
        node.set_ceilings(allow("0.2"))
    assert supervisor.ceiling == Fraction(4, 10)


def test_a_share_by_dra_counts_as_one_of_vgpus_does(
    node: Supervisor, supervisor: DaemonSupervisor, allow: Allow, root: Path
) -> None:
    with kubelet(root / "kubelet", claimed("team/a", UUID, milli=666), held("team/b", "GPU-other", vgpus=9)):
        node.set_ceilings(allow("0.1", vgpus_per_gpu=3))
    assert supervisor.ceiling == Fraction(2, 3)


def test_another_number_of_vgpus_changes_no_ceiling(
    node: Supervisor, supervisor: DaemonSupervisor, allow: Allow, root: Path
) -> None:
    with kubelet(root / "kubelet"):
        node.set_ceilings(allow("0.2"))
        assert supervisor.ceiling == Fraction(1, 5)
        node.set_ceilings(allow("0.2", vgpus_per_gpu=20))
    assert supervisor.ceiling == Fraction(1, 5)


def test_vgpus_of_an_earlier_number_count_as_what_they_were(
    node: Supervisor, supervisor: DaemonSupervisor, allow: Allow, root: Path, context: SupervisorContext
) -> None:
    numbers = [(VGpuId(UUID, index), Held(resource=RESOURCE, of=of)) for index, of in enumerate((5, 20, 20))]
    write_parts(context.state_dir, parts(numbers, vgpus_per_gpu=20))
    with kubelet(root / "kubelet", held("team/a", UUID, vgpus=3)):
        node.set_ceilings(allow("0.1", vgpus_per_gpu=20))
    assert supervisor.ceiling == Fraction(1, 5) + Fraction(2, 20)


def test_vgpus_count_on_the_gpu_that_they_are_on_whichever_their_ids_name(
    node: Supervisor, supervisor: DaemonSupervisor, allow: Allow, root: Path, context: SupervisorContext
) -> None:
    on = [(VGpuId("GPU-other", index), Held(resource=RESOURCE, of=10, gpu=UUID)) for index in range(3)]
    write_parts(context.state_dir, parts(on, vgpus_per_gpu=10))
    with kubelet(root / "kubelet", held("team/a", "GPU-other", vgpus=3)):
        node.set_ceilings(allow("0.1"))
    assert supervisor.ceiling == Fraction(3, 10)


def test_no_ceiling_falls_while_nobody_knows_on_which_gpu_a_vgpu_is(
    node: Supervisor, supervisor: DaemonSupervisor, allow: Allow, root: Path, context: SupervisorContext
) -> None:
    for known in ([], [(VGpuId(UUID, 0), Held(resource=RESOURCE, of=10, gpu=None))]):
        write_parts(context.state_dir, parts(known, vgpus_per_gpu=10))
        with kubelet(root / "kubelet", held("team/a", UUID, vgpus=1)):
            node.set_ceilings(allow("0.1"))
        assert supervisor.ceiling == 1


def test_no_ceiling_falls_while_nobody_knows_what_held_vgpus_are(
    node: Supervisor, supervisor: DaemonSupervisor, allow: Allow, root: Path, context: SupervisorContext
) -> None:
    (context.state_dir / "vgpus.json").write_text("{")
    with kubelet(root / "kubelet", held("team/a", UUID, vgpus=3)):
        node.set_ceilings(allow("0.1"))
    assert supervisor.ceiling == 1


def test_a_mode_that_is_not_put_back_is_told_of_once_and_again_after_it_was(
    root: Path, context: SupervisorContext, caplog: pytest.LogCaptureFixture
) -> None:
    nvml = FakeModes({"GPU-a": 0, "GPU-b": 0})
    modes = ComputeModes(lambda: nvml, record=root / "modes.json", boot_id="this")
    tenancy = Tenancy(root / "kubelet", lambda: [RESOURCE], bindings=context.parts.bindings)
    node = Supervisor(replace(context, modes=modes, tenancy=tenancy))
    with kubelet(root / "kubelet"):
        for fails in (True, True, False, True, True):
            modes.hold(["GPU-a", "GPU-b"])
            nvml.refuses = {"GPU-a": FakeNvmlError(4, "Insufficient Permissions")} if fails else {}
            node.clean_up_left()
            assert (nvml.modes["GPU-a"] == 0, nvml.modes["GPU-b"]) == (not fails, 0)
            nvml.refuses = {}
    assert [one["gpu"] for one in said(caplog, "compute mode not restored")] == ["GPU-a"] * 2


def test_a_process_that_names_the_directory_above_leads_nobody_out_of_that_of_the_pipes(
    root: Path, pipes: Path, context: SupervisorContext
) -> None:
    program = Path(shutil.copy(shutil.which("sleep") or "sleep", root / "nvidia-cuda-mps"))
    with subprocess.Popen([program, "60"], env={"CUDA_MPS_PIPE_DIRECTORY": f"{pipes}/.."}) as process:
        try:
            Supervisor(context).clean_up(keep=[])
            assert process.poll() is None
        finally:
            process.kill()
    assert program.exists()


@pytest.mark.parametrize(
    ("device", "holds"), [("300m-0", True), ("1000m-0", True), ("300m-timesliced-0", False), ("1000m-whole-0", False)]
)
def test_a_share_by_dra_holds_mps_where_it_is_one_by_mps(
    node: Supervisor, root: Path, device: str, *, holds: bool
) -> None:
    with kubelet(root / "kubelet", Claimed("t/p", f"{label_of(UUID)}-{device}")):
        assert is_held(node) == holds


@pytest.mark.parametrize(
    "device", ["gpus-54a03c402eaeeedc-2000m-whole", "gpus-54a03c402eaeeedc-2000m-timesliced-model-t4"]
)
def test_several_gpus_by_dra_are_none_of_mps(node: Supervisor, root: Path, device: str) -> None:
    with kubelet(root / "kubelet", Claimed("t/p", device)):
        assert not is_held(node)


def test_vgpus_and_a_kubelet_that_does_not_answer_hold_mps(node: Supervisor, root: Path) -> None:
    assert is_held(node)
    with kubelet(root / "kubelet", held("t/p", UUID, vgpus=1)) as listed:
        assert is_held(node)
        listed.clear()
        assert not is_held(node)


def test_a_gpu_stays_exclusive_where_a_kubelet_that_has_just_started_does_not_name_its_tenants_yet(
    node: Supervisor, root: Path, context: SupervisorContext
) -> None:
    one = (VGpuId(UUID, 0), Held(resource=RESOURCE, of=10, named=True))
    write_parts(context.state_dir, parts([one], vgpus_per_gpu=10))
    with kubelet(root / "kubelet", held("t/p", UUID, vgpus=1)):
        assert node._in_use.of(frozenset({UUID})) == {UUID}
    with kubelet(root / "kubelet"):
        assert is_held(node)
        assert node._in_use.of(frozenset({UUID})) == {UUID}


@pytest.mark.parametrize(
    ("resource", "runs", "holds"), [(RESOURCE, True, True), (RESOURCE, False, False), ("a.b/c", True, False)]
)
def test_a_gpu_stays_exclusive_of_which_a_plugin_that_runs_knows_a_tenant(
    node: Supervisor, root: Path, context: SupervisorContext, resource: str, *, runs: bool, holds: bool
) -> None:
    one = (VGpuId(UUID, 0), Held(resource=resource, of=10, named=True, pod=1))
    write_parts(context.state_dir, parts([one], vgpus_per_gpu=10))
    with (
        kubelet(root / "kubelet", held("team/others", "GPU-other", vgpus=1, resource="other.com/x")),
        ExitStack() as stack,
    ):
        if runs:
            stack.enter_context(alone(context.state_dir, "plugin"))
        assert is_held(node) == holds
        assert bool(node._in_use.of(frozenset({UUID}))) == holds


@pytest.mark.parametrize("failing", [0, 1])
def test_a_gpu_for_which_there_was_no_thread_is_supervised_once_there_is_one(
    context: SupervisorContext, gpu: Gpu, standin: StandIn, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    node = Supervisor(context)
    monkeypatch.setattr(node, "_prepare", lambda: None)  # mounts
    starts, asked = Thread.start, list[str]()

    def start(self: Thread) -> None:
        asked.append(self.name)
        if len(asked) == failing + 1:
            raise RuntimeError("can't start new thread")
        starts(self)

    with monkeypatch.context() as patched:
        patched.setattr(Thread, "start", start)
        with pytest.raises(ThreadsError, match="can't start new thread"):
            node.adopt([gpu])
    node.adopt([gpu])
    try:
        wait_until(lambda: [one.report.state for one in node._now()] == ["ready"])
        assert len(standin.starts()) == 1
    finally:
        node.end()
