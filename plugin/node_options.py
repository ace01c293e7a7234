"""The options that the parts on a node have, `gpu-share plugin` and `gpu-share mps`."""

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from plugin.state_files import STATE_DIR
from program.options import ADDRESS, DIRECTORY, FILE, metrics_option, option, policies_option

F = TypeVar("F", bound=Callable[..., Any])

state_dir_option = option(
    "--state-dir",
    type=DIRECTORY,
    default=STATE_DIR,
    help="Directory in which the parts on a node publish their state.",
)


_OF_ALL_PARTS = (
    policies_option,
    option(
        "--strategy",
        type=click.Choice(["mps", "time-slicing", "whole"]),
        default="mps",
        help="Sharing strategy of this node's GPUs, where nodes of _cluster.yaml says nothing else.",
    ),
    option("--node-name", metavar="NAME", default=platform.node, help="This node, as nodes of _cluster.yaml names it."),
    state_dir_option,
    option(
        "--lib-dir",
        type=DIRECTORY,
        default=Path("/var/lib/gpu-share"),
        help="Directory of what outlives a restart of the machine: the numbers by which indexes of _cluster.yaml "
        "count its GPUs.",
    ),
    option(
        "--pod-resources",
        type=FILE,
        default=Path("/var/lib/kubelet/pod-resources/kubelet.sock"),
        help="The kubelet's PodResources socket, which says which pod holds which vGPU.",
    ),
    option(
        "--pod-name",
        metavar="NAME",
        default="",
        help="Name of this pod: lists of the kubelet without it count for nothing. Not given: all of them count.",
    ),
    metrics_option,
    option(
        "--state-bind",
        type=ADDRESS,
        default=None,
        metavar="HOST:PORT",
        help="Address and port for who looks at the node, GET /state; without it nothing is served.",
    ),
    option(
        "--pod-uid",
        metavar="UID",
        default="",
        help="UID of this pod, by which GET /state?pod=UID is asked; without it anybody may ask who connects.",
    ),
    option("--wait-for-gpus", is_flag=True, help="Wait for NVML and a GPU instead of ending with an error."),
)


def node_options(command: F) -> F:
    """Declare the options that all parts on a node have."""
    for declare in reversed(_OF_ALL_PARTS):
        command = declare(command)
    return command
