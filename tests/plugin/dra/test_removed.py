"""What somebody removes of the directories in which the driver serves."""

import json
import shutil
import signal
import time

import pytest

from plugin.simulated.api_server import SLICES
from policies.contract import DRIVER
from tests.plugin.dra.node import DEVICES, DraNode, health
from tests.plugin.mps.isolated import mounted, needs_mounts
from tests.plugin.plugin_process import Plugin
from tests.plugin.waiting import wait_until

pytestmark = pytest.mark.exhaustive

TWO_MORE_TRIES_SECONDS = 2.5


def removed_behind(node: DraNode, plugin: Plugin, option: str) -> bool:
    """Make the node's directory anew, and say whether the plugin ends for that, and with no slice left."""
    shutil.rmtree(node.directory / "host")
    (node.directory / "host").mkdir()
    code, written = plugin.ends()
    failed = [json.loads(line)["reason"] for line in written.splitlines() if '"the plugin failed"' in line]
    says = f"{node.directory / node.mounts[option]}"
    return (
        code == 1
        and failed[0].startswith(f"{option} {says}")
        and "somebody removed the directory on the node" in failed[0]
        and node.store.below(SLICES) == []
    )


def mount(node: DraNode, option: str, *, at: str, below: str = "") -> None:
    """Let the plugin have the directory *at*, or one below it, as a container does."""
    (node.directory / "host").mkdir()
    (node.directory / at / below).mkdir(parents=True)
    node.mounts = {option: at}
    node.before = mounted(node.directory / "host", node.directory / at / below)


@needs_mounts
def test_where_the_directory_of_registrations_is_made_anew_the_plugin_ends_and_the_next_one_is_found(
    node: DraNode,
) -> None:
    option = "--kubelet-registrar-dir"
    mount(node, option, at="rm")
    (node.directory / "r").symlink_to("host")
    plugin = node.start()
    assert removed_behind(node, plugin, option)
    node.start()


@needs_mounts
def test_where_the_drivers_own_directory_is_removed_the_plugin_ends_and_the_next_one_serves_in_the_new_one(
    node: DraNode,
) -> None:
    option = "--kubelet-plugins-dir"
    mount(node, option, at="pm", below=DRIVER)
    plugin = node.start_unregistered()
    wait_until((node.directory / "host" / "dra.sock").is_socket)
    assert removed_behind(node, plugin, option)
    node.start_unregistered()
    wait_until((node.directory / "host" / "dra.sock").is_socket)


def test_while_the_registration_cannot_be_served_no_slice_is_there_and_the_log_says_why_once(node: DraNode) -> None:
    registrar = node.directory / "r"
    plugin = node.start()
    shutil.rmtree(registrar)
    registrar.touch()
    wait_until(lambda: node.store.below(SLICES) == [])
    wait_until(lambda: f"{registrar}/{DRIVER}-reg.sock: cannot serve" in health(node).slices_not_published)
    asked = len([one for one in node.store.requests if one[0] == "DELETE"])
    plugin.logged("cannot serve, trying again")
    time.sleep(TWO_MORE_TRIES_SECONDS)
    registrar.unlink()
    node.register()
    wait_until(lambda: len(node.devices()) == DEVICES and health(node).slices_not_published == "")
    assert len([one for one in node.store.requests if one[0] == "DELETE"]) == asked
    code, written = plugin.ends(by=signal.SIGTERM)
    assert code == 0
    assert "cannot serve, trying again" not in written
