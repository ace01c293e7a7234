"""What `gpu-share policy check` warns of: files that are valid and do not do what their author thinks."""

from pathlib import Path

import pytest

from policies.reading.directory import MOST_FILES
from policies.reading.told import MOST_TOLD
from tests.webhook.commands import run


def warnings(directory: Path, **files: str) -> list[str]:
    """The warnings about files, which are valid; the directory's name is cut off."""
    for name, text in files.items():
        (directory / name.replace("_yaml", ".yaml")).write_text(text)
    result = run("policy", "check", directory)
    assert ": valid, " in result.stdout
    return [line.removeprefix(f"{directory}") for line in result.stderr.splitlines()]


def test_the_shipped_files_give_no_warning() -> None:
    assert run("policy", "check").stderr == ""


def test_an_empty_directory_means_the_built_in_defaults(tmp_path: Path) -> None:
    (line,) = warnings(tmp_path)
    assert line.startswith(": warning: no policy files, so the built-in defaults hold: name another directory")


def test_a_file_for_an_exempt_namespace_is_never_used(tmp_path: Path) -> None:
    files = {"_cluster.yaml": "exemptNamespaces: [system]", "system.yaml": "mode: warn", "kube-system.yaml": ""}
    (line,) = warnings(tmp_path, **files)
    assert line == (
        "/system.yaml: warning: never used, since exemptNamespaces in _cluster.yaml names system: remove one of the two"
    )


def test_a_file_for_the_namespace_of_gpu_share_is_never_used(tmp_path: Path) -> None:
    (line,) = warnings(tmp_path, **{"_default.yaml": "", "gpu-share.yaml": "mode: warn"})
    assert line == (
        "/gpu-share.yaml: warning: never used, since the API server calls no webhook for the pods of gpu-share itself: "
        "remove it"
    )


def test_a_file_that_nobody_reads_for_want_of_an_ending_is_named(tmp_path: Path) -> None:
    others = ("README.md", "LICENSE", "Makefile", "run.sh", ".team", "Kustomization", "team.yaml.orig", "team.yaml~")
    (tmp_path / "tools").mkdir()
    told = ("_cluster", "other.yml-old", "third", "third-b.yaml.txt")
    files = {"_default.yaml": "", "team.yaml": ""} | dict.fromkeys((*others, *told), "enabled: false")
    assert warnings(tmp_path, **files) == [
        f"/{name}: warning: expected _cluster.yaml, _default.yaml or <namespace>.yaml: rename or remove the file"
        for name in told
    ]


def test_mode_warn_needs_a_label_on_its_namespace(tmp_path: Path) -> None:
    (line,) = warnings(tmp_path, **{"_default.yaml": "", "team.yaml": "\nmode: warn", "other.yaml": "mode: enforce"})
    assert line.startswith(
        "/team.yaml:2: warning: mode: without a label on the namespace the API server denies these pods: "
    )
    assert line.endswith(": kubectl label namespace team gpu-share.dev/mode=warn")


def test_mode_warn_of_all_namespaces_is_said_once(tmp_path: Path) -> None:
    (line,) = warnings(tmp_path, **{"_default.yaml": "mode: warn", "team.yaml": "", "other.yaml": "mode: enforce"})
    assert line.startswith("/_default.yaml:1: warning: mode: ")
    assert line.endswith("kubectl label namespace NAME gpu-share.dev/mode=warn")


def test_an_upper_bound_between_two_vgpus_is_never_reached(tmp_path: Path) -> None:
    files = {
        "_cluster.yaml": "vgpusPerGpu: 8",
        "_default.yaml": "share:\n  maximum: '0.45'\n  minimum: '0.1'",
        "team.yaml": "share: {podMaximum: '0.1'}",
        "other.yaml": "share: {maximum: '0.25', podMaximum: '2'}",
    }
    first, second = warnings(tmp_path, **files)
    assert first == (
        "/_default.yaml:2: warning: share.maximum: 0.45 of a GPU is 3.6 of 8 vGPUs: at most 3 can be granted; "
        "use whole vGPUs"
    )
    assert second.startswith("/team.yaml:1: warning: share.podMaximum: 0.1 of a GPU is 0.8 of 8 vGPUs: less than one")


def test_more_vgpus_than_mps_has_clients_mean_that_its_pods_are_denied(tmp_path: Path) -> None:
    (line,) = warnings(
        tmp_path,
        **{"_cluster.yaml": "vgpusPerGpu: 61", "_default.yaml": "enabled: false", "team.yaml": "enabled: true"},
    )
    assert line.startswith("/_cluster.yaml: warning: vgpusPerGpu: pods under mps are denied: vgpusPerGpu 61 is more")
    assert warnings(tmp_path, **{"team.yaml": "enabled: true\nstrategy: time-slicing"}) == []


def test_bounds_of_two_files_that_no_share_lies_between_are_both_named(tmp_path: Path) -> None:
    files = {"_default.yaml": "\nshare: {minimum: '0.31'}", "team.yaml": "share: {maximum: '0.39'}"}
    (line,) = [one for one in warnings(tmp_path, **files) if "every share" in one]
    assert line == (
        "/team.yaml:1: warning: share: every share is denied: no number of 10 vGPUs is from share.minimum 0.31 "
        "(_default.yaml:2) to share.maximum 0.39 (team.yaml:1): widen share"
    )


CLIENTS_OF_OLDER_DRIVERS = (
    "are more than the 48 clients that MPS serves with drivers before CUDA 13.1, and a GPU with such a driver is not "
    "shared: see that nvidia-smi shows CUDA 13.1 or newer on all nodes, or write at most 48"
)


@pytest.mark.parametrize(
    ("cluster", "default", "told"),
    [
        ("vgpusPerGpu: 49", "", "vgpusPerGpu: 49 vGPUs"),
        ("vgpusPerGpu: 60\nnodes: [{device: t4}]", "devices: [gpu, t4]", "vgpusPerGpu: 60 vGPUs"),
        ("vgpusPerGpu: 60\nnodes: [{offer: mps}]", "strategy: time-slicing", "vgpusPerGpu: 60 vGPUs"),
        ("nodes: [{device: t4, vgpusPerGpu: 50}]", "devices: [t4]", "nodes: 50 vGPUs of the device t4"),
        (
            "nodes: [{device: t4, offer: mps, vgpusPerGpu: 50}]",
            "enabled: false",
            "nodes: 50 vGPUs of the device t4",
        ),
        (
            "nodes: [{mig: shared}]\nvgpusPerInstance: {7g.80gb: 56}",
            "",
            "vgpusPerInstance: 56 vGPUs of the device mig-7g.80gb",
        ),
    ],
)
def test_more_vgpus_than_mps_has_clients_with_an_older_driver_are_a_matter_of_the_drivers(
    tmp_path: Path, cluster: str, default: str, told: str
) -> None:
    assert warnings(tmp_path, **{"_cluster.yaml": cluster, "_default.yaml": default}) == [
        f"/_cluster.yaml: warning: {told} {CLIENTS_OF_OLDER_DRIVERS}"
    ]


@pytest.mark.parametrize(
    ("cluster", "default"),
    [
        ("vgpusPerGpu: 48", ""),
        ("vgpusPerGpu: 60", "strategy: time-slicing"),
        ("vgpusPerGpu: 60", "enabled: false"),
        ("nodes: [{device: t4, offer: time-slicing, vgpusPerGpu: 50}]", ""),
        ("vgpusPerInstance: {7g.80gb: 56}", ""),
    ],
)
def test_every_driver_serves_what_is_less_or_not_under_mps(tmp_path: Path, cluster: str, default: str) -> None:
    assert warnings(tmp_path, **{"_cluster.yaml": cluster, "_default.yaml": default}) == []


SEVERAL = "share: {maximum: '4'}"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"_default.yaml": SEVERAL, "team.yaml": ""}, "/_default.yaml:1: warning: share.maximum: a share"),
        (
            {"_default.yaml": "", "team.yaml": f"mode: enforce\n{SEVERAL}"},
            "/team.yaml:2: warning: share.maximum: a share",
        ),
        (
            {"_default.yaml": f"strategy: time-slicing\n{SEVERAL}", "team.yaml": "strategy: mps"},
            "/team.yaml:1: warning: strategy: share.maximum is 4 (_default.yaml:2), and a share",
        ),
        (
            {"_default.yaml": "share: {maximum: '4', whole: gpus}", "team.yaml": "share: {whole: vgpus}"},
            "/team.yaml:1: warning: share.whole: share.maximum is 4 (_default.yaml:1), and a share",
        ),
    ],
)
def test_a_maximum_of_several_gpus_is_one_under_mps(tmp_path: Path, files: dict[str, str], told: str) -> None:
    (warning,) = warnings(tmp_path, **files)
    assert warning == (
        f"{told} above 1 is denied under mps, where a process reaches one GPU: write share: {{whole: gpus}} too"
    )


@pytest.mark.parametrize(
    ("files", "told"),
    [
        (
            {"_default.yaml": "\ndevices: [mig-1g.10gb]\nstrategy: time-slicing"},
            "/_default.yaml:2: warning: devices: MIG instances",
        ),
        (
            {"_default.yaml": "\ndevices: [mig-1g.10gb]", "team.yaml": "strategy: time-slicing"},
            "/team.yaml:1: warning: strategy: the MIG instances of devices (_default.yaml:2)",
        ),
    ],
)
def test_mig_instances_that_no_share_below_one_can_be_of_are_named_with_their_line(
    tmp_path: Path, files: dict[str, str], told: str
) -> None:
    (warning,) = warnings(tmp_path, **{"_cluster.yaml": "vgpusPerGpu: 6"}, **files)
    assert warning == (
        f"{told} are shared by mps or given whole, and under time-slicing a share below 1 of them is denied: "
        "write strategy: mps"
    )


@pytest.mark.parametrize(
    "more", ["strategy: time-slicing\nshare: {maximum: '4'}", "share: {maximum: '4', whole: gpus}"]
)
def test_a_maximum_of_several_gpus_can_be_had_otherwise(tmp_path: Path, more: str) -> None:
    assert warnings(tmp_path, **{"_default.yaml": more}) == []


def test_more_files_without_an_ending_than_a_config_map_may_have_are_told_and_not_each(tmp_path: Path) -> None:
    first, *rest = warnings(tmp_path, **{f"n{number}": "" for number in range(MOST_FILES)}, **{"_default.yaml": ""})
    assert first.startswith(f": warning: no webhook starts by a ConfigMap of all {MOST_FILES + 1} files")
    assert len(rest) == MOST_TOLD + 1
    assert rest[-1].endswith(": warning: at least one more problem is not listed: correct the others first")
