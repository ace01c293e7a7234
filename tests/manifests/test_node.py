"""Directories and variables that plugin, MPS daemons and pods with a share must agree on."""

import stat
import subprocess
from pathlib import Path, PurePosixPath

import pytest
import yaml

from plugin.simulated.gpus import simulated_gpus
from policies import contract
from tests.command_line import command as named
from tests.manifests.admission import BASE
from tests.manifests.installations import each_installation, policy_files
from tests.manifests.render import MANIFESTS, Object, containers, identity, render, templates

PLUGIN = ("DaemonSet", contract.NAMESPACE, "gpu-share-plugin")
MPS = ("DaemonSet", contract.NAMESPACE, "gpu-share-mps")
BOTH = pytest.mark.parametrize("name", [PLUGIN, MPS], ids=["plugin", "mps"])
COMMANDS = {PLUGIN: "plugin", MPS: "mps"}


def default(command: str, option: str) -> str:
    (found,) = (parameter for parameter in named(command).params if parameter.name == option)
    return str(found.default)


def environment(template: Object) -> Object:
    (container,) = template["spec"]["containers"]
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in container["env"]}


def host_paths(template: Object) -> dict[str, str]:
    """Return the path in the container by the path on the node, of each hostPath volume."""
    spec = template["spec"]
    mounted = {mount["name"]: mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]}
    return {
        volume["hostPath"]["path"]: mounted.get(volume["name"], "")
        for volume in spec["volumes"]
        if "hostPath" in volume
    }


def pipe_directory(objects: list[Object]) -> str:
    files = policy_files(objects, templates(objects)[PLUGIN])
    directory: str = yaml.safe_load(files["_cluster.yaml"])["mps"]["pipeDirectory"]
    return directory


def test_plugin_and_mps_daemons_run_on_the_same_nodes() -> None:
    plugin, mps = (templates(BASE)[name]["spec"] for name in (PLUGIN, MPS))
    for field in ("nodeSelector", "tolerations", "priorityClassName"):
        assert plugin[field] == mps[field]


def test_neither_daemon_set_selects_pods_of_the_other() -> None:
    # A DaemonSet that selected pods of the other was NVIDIA/k8s-device-plugin#982.
    selectors = {identity(one): one["spec"]["selector"]["matchLabels"] for one in BASE if one["kind"] == "DaemonSet"}
    assert selectors.keys() == {PLUGIN, MPS}
    for name, selector in selectors.items():
        selected = {
            other for other in selectors if selector.items() <= templates(BASE)[other]["metadata"]["labels"].items()
        }
        assert selected == {name}


@pytest.mark.parametrize(
    ("name", "option"),
    [
        (PLUGIN, "kubelet_dir"),
        (PLUGIN, "state_dir"),
        (PLUGIN, "pod_resources"),
        (MPS, "state_dir"),
        (MPS, "pod_resources"),
        (MPS, "container_logs"),
    ],
)
def test_a_directory_of_the_node_is_mounted_where_the_option_expects_it(
    name: tuple[str, str, str], option: str
) -> None:
    path = default(COMMANDS[name], option)
    directory = str(PurePosixPath(path).parent) if path.endswith(".sock") else path
    assert host_paths(templates(BASE)[name])[directory] == directory


@each_installation
def test_what_claims_hold_is_mounted_where_the_plugin_expects_it_and_written_to_by_dra_alone(directory: Path) -> None:
    template = templates(render(directory))[PLUGIN]
    own = str(PurePosixPath(default("plugin", "kubelet_plugins_dir")) / contract.DRIVER)
    paths = host_paths(template)
    assert paths[own] == own
    (volume,) = (one for one in template["spec"]["volumes"] if one.get("hostPath", {}).get("path") == own)
    assert volume["hostPath"]["type"] == "DirectoryOrCreate"  # where nothing was ever allocated by DRA, too
    (mount,) = (one for one in template["spec"]["containers"][0]["volumeMounts"] if one["mountPath"] == own)
    registrar = default("plugin", "kubelet_registrar_dir")
    is_by_dra = directory.name.startswith("dra")
    assert ("readOnly" in mount, registrar in paths) == (not is_by_dra, is_by_dra)


@each_installation
def test_the_pipe_directory_is_mounted_where_the_policies_say(directory: Path) -> None:
    objects = render(directory)
    pipes = pipe_directory(objects)
    if MPS in templates(objects):
        assert host_paths(templates(objects)[MPS])[pipes] == pipes
        mounts = containers(templates(objects)[MPS])[0]["volumeMounts"]
        propagated = {one["mountPath"]: one["mountPropagation"] for one in mounts if "mountPropagation" in one}
        assert propagated == dict.fromkeys((pipes, str(default("mps", "state_dir"))), "Bidirectional")
    else:
        assert pipes in host_paths(templates(objects)[PLUGIN])


def test_the_state_directory_is_not_where_pods_may_write() -> None:
    state = PurePosixPath(default("mps", "state_dir"))
    assert not state.is_relative_to(pipe_directory(BASE))


@BOTH
def test_each_daemon_set_gets_the_names_of_its_node_and_of_its_pod(name: tuple[str, str, str]) -> None:
    told = environment(templates(BASE)[name])
    assert told["GPU_SHARE_NODE_NAME"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}
    assert told["GPU_SHARE_POD_NAME"] == {"fieldRef": {"fieldPath": "metadata.name"}}


def test_each_daemon_set_sees_all_gpus_with_the_libraries_it_calls() -> None:
    told = {name: environment(templates(BASE)[name]) for name in (PLUGIN, MPS)}
    assert {one["NVIDIA_VISIBLE_DEVICES"] for one in told.values()} == {"all"}
    assert told[PLUGIN]["NVIDIA_DRIVER_CAPABILITIES"] == "utility"  # NVML
    assert told[MPS]["NVIDIA_DRIVER_CAPABILITIES"] == "compute,utility"  # the MPS programs as well


@each_installation
def test_one_way_is_installed_and_the_plugin_has_the_directories_of_cdi(directory: Path) -> None:
    objects = render(directory)
    template = templates(objects)[PLUGIN]
    cluster = yaml.safe_load(policy_files(objects, template)["_cluster.yaml"])
    # One: where a runtime ignores CDI devices, no weaker way may replace them unnoticed.
    assert cluster["handover"] == (["envvar"] if directory.name == "envvar" else ["cdi"])
    paths, own = host_paths(template), default("plugin", "cdi_dir")
    assert (paths[own], paths["/etc/cdi"]) == (own, "/etc/cdi")
    mounts = template["spec"]["containers"][0]["volumeMounts"]
    read_only = {mount["mountPath"] for mount in mounts if mount.get("readOnly")}
    assert "/etc/cdi" in read_only
    assert own not in read_only


def test_simulated_gpus_have_no_mps_daemons() -> None:
    objects = render(MANIFESTS / "overlays" / "simulated")
    labels = [one["metadata"]["labels"] for one in objects]
    assert not [found for found in labels if found.get("app.kubernetes.io/component") == "mps"]
    assert "GPU_SHARE_SIMULATE" in environment(templates(objects)[PLUGIN])


def test_simulated_gpus_have_the_directories_and_modes_that_gpu_share_mps_would_make(tmp_path: Path) -> None:
    template = templates(render(MANIFESTS / "overlays" / "simulated"))[PLUGIN]
    (container,) = template["spec"]["initContainers"]
    pipes = str(tmp_path / "nvidia-mps")
    (tmp_path / "nvidia-mps" / "shm").mkdir(parents=True, mode=0o755)  # as an earlier version left it
    script = [argument.replace("/tmp/nvidia-mps", pipes) for argument in container["args"]]
    subprocess.run([*container["command"], *script], check=True, umask=0o077)
    made = {path.name: stat.S_IMODE(path.stat().st_mode) for path in Path(pipes).iterdir()}
    assert made == {"shm": 0o1777} | {gpu.uuid: 0o755 for gpu in simulated_gpus("2xH200")}
