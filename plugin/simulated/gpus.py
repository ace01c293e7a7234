"""
Simulated GPUs, for `--simulate`: `2xH200`, or a file that lists them, and what goes wrong with them.

    gpus:
    - {model: H200, numaNode: 0}
    - {model: Prototype, memoryMib: 65536, reservedMib: 600, uuid: GPU-00000000-0000-0000-0000-000000000001}
    - {model: H100, mig: [1g.10gb, 1g.10gb+me, 3g.40gb]}
    faults:
    - {at: 10, gpu: 0, xid: 79, recovers: 40}

`plugin/simulated/faults.py` says what a fault can be. `1xH100:7x1g.10gb` is a GPU in MIG mode with seven instances.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated
from uuid import NAMESPACE_DNS, uuid5

import msgspec

from plugin.errors import SimulationError
from plugin.gpus.gpu import Gpu, MigInstance
from plugin.simulated.faults import MOST_FAULTS, Entry, MpsFault, ScriptedFault, scripted_faults
from policies.mig import profile_of
from policies.reading import document

_MIB = 1024 * 1024
_MOST_GPUS = 64
_LARGEST_FILE_BYTES = 64 * 1024
_SPECIFICATION = re.compile(
    r"(?P<count>[1-9][0-9]{0,3})x(?P<model>[A-Za-z][A-Za-z0-9-]*)"
    r"(:(?P<instances>[1-7])x(?P<profile>[0-9a-z.+-]+))?",
    re.ASCII,
)
_SLICES = 7  # of the compute of a GPU; of its memory there are eight
_MEMORY_SLICES = re.compile(r"([0-9]+)g[.]", re.ASCII)

# Total memory in MiB as nvidia-smi prints it for the card.
MODELS = {
    "A10": 23028,
    "A100-40GB": 40960,
    "A100-80GB": 81920,
    "A10G": 23028,
    "B200": 183359,
    "H100": 81559,
    "H200": 143771,
    "L4": 23034,
    "L40S": 46068,
    "T4": 15360,
    "V100": 32768,
}


class _SimulatedGpu(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    model: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]
    memory_mib: Annotated[int, msgspec.Meta(ge=1, le=16 * 1024 * 1024)] | None = None
    reserved_mib: Annotated[int, msgspec.Meta(ge=0, le=16 * 1024 * 1024)] = 0  # of it
    uuid: Annotated[str, msgspec.Meta(pattern=r"^GPU-[0-9a-f-]{8,59}$")] | None = None
    numa_node: Annotated[int, msgspec.Meta(ge=0, le=1023)] | None = None
    mig: Annotated[list[str], msgspec.Meta(max_length=_SLICES)] | None = None  # profiles; None is not in MIG mode


class _File(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    gpus: Annotated[list[_SimulatedGpu], msgspec.Meta(min_length=1, max_length=_MOST_GPUS)]
    faults: Annotated[list[Entry], msgspec.Meta(max_length=MOST_FAULTS)] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedNode:
    """The GPUs, and what goes wrong with them, by its beginning."""

    gpus: tuple[Gpu, ...]
    instances: tuple[Gpu, ...] = ()  # of MIG
    in_mig_mode: frozenset[str] = frozenset()  # UUIDs of GPUs
    faults: tuple[ScriptedFault, ...] = ()


def simulated_gpus(specification: str) -> tuple[Gpu, ...]:
    """Make the GPUs of `simulated_node`, without MIG instances; raises the same."""
    return simulated_node(specification).gpus


def simulated_mps_faults(node: SimulatedNode, seconds: float) -> dict[str, str]:
    """Say which GPUs have no MPS daemon that is ready *seconds* after the start: why, by UUID."""
    faults = (fault for fault in node.faults if isinstance(fault, MpsFault))
    return {fault.gpu_uuid: fault.why for fault in faults if fault.holds(seconds)}


def simulated_node(specification: str) -> SimulatedNode:
    """
    Make the GPUs and faults that *specification* names; the same ones for the same text.

    Raises:
        SimulationError: If it is neither `<count>x<model>` with a known model nor a readable file.
    """
    match = _SPECIFICATION.fullmatch(specification)
    path = Path(specification)
    if match and not os.path.exists(path):  # noqa: PTH110 - Path's raises where it cannot be seen; so does is_file
        try:
            return _node_of_model(match)
        except ValueError as error:
            raise SimulationError(f"--simulate {specification}: {error}") from error
    if match is None and not os.path.isfile(path):  # noqa: PTH113
        raise SimulationError(f"--simulate {specification}: expected a file, or a count and model such as 2xH200")
    try:
        return _node_of_file(_read(path))
    except (OSError, ValueError, document.DocumentError) as error:
        raise SimulationError(f"--simulate {path}: {' '.join(str(error).split())}") from error


def _node_of_model(match: re.Match[str]) -> SimulatedNode:
    name, count = match["model"], int(match["count"])
    model = next((known for known in MODELS if known.lower() == name.lower()), None)
    if model is None:
        raise ValueError(f"unknown model, known are {', '.join(MODELS)}; or name a file")
    if count > _MOST_GPUS:
        raise ValueError(f"at most {_MOST_GPUS} GPUs")
    mig = [match["profile"]] * int(match["instances"]) if match["instances"] else None
    # Two sockets, as such nodes have: the first half of the GPUs is next to the first.
    return _node([_SimulatedGpu(model=model, numa_node=2 * index // count, mig=mig) for index in range(count)])


def _node_of_file(text: str) -> SimulatedNode:
    file = msgspec.convert(document.read(text).value, _File)
    node = _node(file.gpus)
    if len({gpu.uuid for gpu in node.gpus}) < len(node.gpus):
        raise ValueError("gpus: each uuid must be there once")
    return replace(node, faults=scripted_faults(file.faults, [gpu.uuid for gpu in node.gpus]))


def _read(path: Path) -> str:
    with path.open("rb") as file:
        content = file.read(_LARGEST_FILE_BYTES + 1)
    if len(content) > _LARGEST_FILE_BYTES:
        raise ValueError(f"larger than {_LARGEST_FILE_BYTES} bytes")
    return content.decode()


def _node(simulated: Sequence[_SimulatedGpu]) -> SimulatedNode:
    gpus = tuple(_gpu(one, index) for index, one in enumerate(simulated))
    cut = [(gpu, one.mig) for gpu, one in zip(gpus, simulated, strict=True) if one.mig is not None]
    return SimulatedNode(
        gpus=gpus,
        instances=tuple(instance for gpu, profiles in cut for instance in _instances(gpu, profiles)),
        in_mig_mode=frozenset(gpu.uuid for gpu, _ in cut),
    )


def _instances(gpu: Gpu, profiles: Sequence[str]) -> Iterator[Gpu]:
    used = 0
    for number, written in enumerate(profiles):
        profile, slices = profile_of(written), _MEMORY_SLICES.match(written)
        if profile is None or slices is None:
            raise ValueError(f"gpus[{gpu.index}].mig: expected a profile such as 1g.10gb, got {written!a}")
        used += int(slices[1])
        if used > _SLICES:
            raise ValueError(f"gpus[{gpu.index}].mig: the profiles have more than the {_SLICES} slices of a GPU")
        placed = MigInstance(profile=profile, parent_uuid=gpu.uuid, gpu_instance=number + 1, compute_instance=0)
        uuid = f"MIG-{uuid5(NAMESPACE_DNS, f'{number}.{profile}.{gpu.uuid}.gpu-share.dev')}"
        memory_bytes = gpu.memory_bytes * int(slices[1]) // (_SLICES + 1)
        yield replace(gpu, uuid=uuid, memory_bytes=memory_bytes, reserved_bytes=0, instance=placed)


def _gpu(simulated: _SimulatedGpu, index: int) -> Gpu:
    memory_mib = simulated.memory_mib or MODELS.get(simulated.model)
    if memory_mib is None:
        raise ValueError(f"gpus[{index}].memoryMib: needed, since {simulated.model} is none of {', '.join(MODELS)}")
    if simulated.reserved_mib >= memory_mib:
        raise ValueError(f"gpus[{index}].reservedMib: expected less than the {memory_mib} MiB of the GPU")
    return Gpu(
        uuid=simulated.uuid or f"GPU-{uuid5(NAMESPACE_DNS, f'{index}.{simulated.model}.gpu-share.dev')}",
        index=index,
        minor=None,
        model=simulated.model,
        memory_bytes=(memory_mib - simulated.reserved_mib) * _MIB,
        reserved_bytes=simulated.reserved_mib * _MIB,
        numa_node=simulated.numa_node,
    )
