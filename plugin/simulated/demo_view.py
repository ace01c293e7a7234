"""How the demo draws: each pod's decision, diff and allocation, and the node as bars of vGPUs."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from plugin.gpus.gpu import VGpuId
from plugin.simulated.device_manager import Received
from policies.contract import VISIBLE_DEVICES
from policies.share import milli_text
from program.terminal import wrapped

_COLOURS = ("cyan", "magenta", "yellow", "green", "blue", "red")
_FREE = "░░░"


def show_title(console: Console, *, number: int, title: str) -> None:
    """Begin a pod."""
    console.print()
    console.print(Rule(f"[bold]{number}. {escape(title)}[/bold]", align="left"))


def show_denial(console: Console, *, status: Mapping[str, Any], why: Sequence[str]) -> None:
    """Show what the user would see."""
    console.print(f"[red]denied[/red], {status['code']} [bold]{escape(status['reason'])}[/bold]")
    _show_line(console, f"  {status['message']}")
    _show_why(console, why[:1])


def show_allocation(
    console: Console,
    *,
    before: dict[str, Any],
    after: dict[str, Any],
    why: Sequence[str],
    received: Mapping[str, Received | str],
) -> None:
    """Show the decision, the diff of the pod, and what each container gets from the node."""
    console.print("[green]granted[/green]")
    _show_why(console, why)
    for line in difflib.unified_diff(_lines(before), _lines(after), n=1, lineterm=""):
        if not line.startswith(("---", "+++", "@@")):
            style = {"+": "green", "-": "red"}.get(line[0], "dim")
            _show_line(console, f"  {line}", style=style)
    for name, got in received.items():
        if isinstance(got, str):
            console.print(f"  [red]{escape(name)}: {escape(got)}[/red]")
            continue
        vgpus = f"{len(got.device_ids)} vGPU" + "s" * (len(got.device_ids) > 1)
        console.print(f"  [bold]{escape(name)}[/bold] on {got.environment[VISIBLE_DEVICES]}, {vgpus}, receives")
        for variable, value in sorted(got.environment.items()):
            _show_line(console, f"    {variable}={value}", style="dim")
        for mount in got.mounts:
            _show_line(console, f"    {mount.host_path} at {mount.container_path}", style="dim")


def show_node(
    console: Console,
    *,
    holders: Mapping[str, tuple[str, str]],
    devices: Sequence[str],
    gpu_of: Callable[[VGpuId], str],
) -> None:
    """Draw each GPU as a bar of its vGPUs, coloured by pod; *gpu_of* says on which one a held vGPU is."""
    pods = list(dict.fromkeys(pod for pod, _ in holders.values()))
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for index, uuid in enumerate(dict.fromkeys(_vgpu(device).gpu_uuid for device in devices)):
        bar = Text()
        vgpus = sum(_vgpu(device).gpu_uuid == uuid for device in devices)
        own = [holder for device, holder in holders.items() if gpu_of(_vgpu(device)) == uuid]
        # Cells of one pod stand together, whatever their numbers.
        for holder in [*sorted(own, key=lambda one: pods.index(one[0])), *[None] * (vgpus - len(own))]:
            bar.append(*_cell(pods, holder))
        table.add_row(f"GPU {index}", uuid[:12], bar, f"{len(own)} of {vgpus} vGPUs")
    console.print()
    console.print(Rule("[bold]The node[/bold]", align="left"))
    console.print(table)
    for index, pod in enumerate(pods):
        colour = _COLOURS[index % len(_COLOURS)]
        console.print(Text.assemble((f" {_letter(index)} ", f"black on {colour}"), f" {pod}"))


def show_fault(console: Console, *, left: int, vgpus: int, status: str) -> None:
    """Show what is left of the node's vGPUs while a GPU is unhealthy, and what the node says of it."""
    console.print()
    console.print(Rule("[bold]A GPU fails[/bold]", align="left"))
    console.print(
        f"The driver reports XID 79 on GPU 0. Its pods stay, no new one is placed there: {left} of {vgpus} vGPUs are "
        "left. On the node, [bold]gpu-share plugin status[/bold] says:",
        highlight=False,
    )
    for line in status.splitlines():
        _show_line(console, f"  {line}")


def show_waiting(  # noqa: PLR0913 - all that there is to see
    console: Console, *, placed: Mapping[int, str], late: int, waits: bool, ended: int, gpu: str
) -> None:
    """Show where shares are by DRA, that one waits until a GPU has room, and where it is then; in thousandths."""
    console.print()
    console.print(Rule("[bold]By DRA, the scheduler chooses the GPU[/bold]", align="left"))
    for milli, uuid in placed.items():
        _show_line(console, f"  {milli_text(milli)} on {uuid}")
    waiting = "no GPU has that much left, the pod is Pending" if waits else "a GPU has that much left"
    _show_line(console, f"  {milli_text(late)}: {waiting}, and none fails")
    _show_line(console, f"  {milli_text(ended)} ends: {milli_text(late)} on {gpu}")


def show_end(console: Console) -> None:
    """Say that nothing is left."""
    console.print("\nNothing is left running. Try your own pod: gpu-share preview FILE")


def _show_why(console: Console, why: Sequence[str]) -> None:
    for line in why:
        _show_line(console, f"  {line}")


def _show_line(console: Console, line: str, *, style: str = "") -> None:
    """Show plain text: broken between words and indented on a terminal, as it is for a program."""
    for part in wrapped(line, console.width) if console.is_terminal else (line,):
        console.print(Text(part, style=style), soft_wrap=True)


def _cell(pods: Sequence[str], holder: tuple[str, str] | None) -> tuple[str, str]:
    if holder is None:
        return _FREE, "dim"
    index = pods.index(holder[0])
    return f" {_letter(index)} ", f"black on {_COLOURS[index % len(_COLOURS)]}"


def _vgpu(device: str) -> VGpuId:
    vgpu = VGpuId.parse(device)
    if vgpu is None:
        raise ValueError(f"the plugin advertised an invalid device ID: {device}")
    return vgpu


def _letter(index: int) -> str:
    return chr(ord("A") + index % 26)


def _lines(pod: dict[str, Any]) -> list[str]:
    text: str = yaml.safe_dump(pod, sort_keys=False, width=120)
    return text.splitlines()
