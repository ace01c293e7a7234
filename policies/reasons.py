"""A decision in sentences: which policy, the arithmetic, every warning, and why."""

from collections.abc import Iterator

from policies.contract import DRA, MILLI_PER_GPU, MPS, PARTITION, WHOLE
from policies.device_names import device_name, is_instance, profile_of_device
from policies.errors import quoted
from policies.grant import ContainerGrant, Decision, Denied, Grant, Untouched
from policies.kind import Kind
from policies.policy import EffectivePolicy
from policies.share import milli_text


def reasons(decision: Decision) -> Iterator[str]:
    """Yield what was decided and why, line by line."""
    match decision:
        case Untouched(reason, (_, *others), Denied(_, denials)):  # the first warning is of them, together
            yield f"The pod is admitted as it is: {reason}."
            yield from (f"Warning: would be denied with {one.code}: {one.message}" for one in denials)
            yield from (f"Warning: {other}" for other in others)
        case Untouched(reason, warnings):
            yield f"The pod is admitted as it is: {reason}."
            yield from (f"Warning: {warning}" for warning in warnings)
        case Denied(policy, denials):
            yield _policy(policy)
            yield from (f"The pod is denied with {one.code}: {one.message}" for one in denials)
        case Grant():
            yield _policy(decision.policy)
            for container in decision.containers:
                yield from _container(container, decision)
            yield from _pod(decision)
            yield from (f"Warning: {warning}" for warning in decision.warnings)


def _policy(policy: EffectivePolicy) -> str:
    files = {source.file for source in policy.sources.values()} | ({policy.file} if policy.file else set())
    if not files:
        return "Policy: the built-in defaults, for there is no policy file."
    layers = sorted(files, key=lambda file: (file != policy.file, file))
    return f"Policy: {' over '.join(layers)}."


def _container(granted: ContainerGrant, grant: Grant) -> Iterator[str]:
    name, per_gpu, vgpus = quoted(granted.slot.name, 63), grant.vgpus_per_gpu, granted.vgpus
    by, rules = quoted(granted.asked_by, 100)[1:-1], grant.policy.policy.share
    allowed = f"{rules.minimum} ({grant.policy.source('share.minimum')}) to {rules.maximum} "
    allowed += f"({grant.policy.source('share.maximum')}) is allowed"
    if granted.share is None:
        asked = Kind(grant.strategy, grant.resource, per_gpu, device=grant.device).counted(vgpus)
        share = "" if grant.strategy in (WHOLE, PARTITION) else f", that is {granted.share_text} of a GPU"
        yield f"Container {name} asks for {asked} by its limit {by}{share}; {allowed}."
    elif grant.strategy == WHOLE:
        yield f"Container {name} asks for {granted.share} of a GPU by {by}; {allowed}."
        yield f"  {'A MIG instance' if is_instance(grant.device) else 'Whole GPUs'}: {_in_limits(granted)}."
    elif grant.strategy == PARTITION:
        yield f"Container {name} asks for {granted.share} of a GPU by {by}; {allowed}."
        held = "Whole devices" if vgpus > MILLI_PER_GPU else f"The smallest that holds it, {milli_text(vgpus)} of a GPU"
        yield f"  {held}: {_in_limits(granted)}."
    else:
        exact = milli_text(granted.share * per_gpu)
        rounding = "" if granted.share.is_exact(per_gpu) else f", rounded up to {vgpus}"
        yield f"Container {name} asks for {granted.share} of a GPU by {by}; {allowed}."
        of = "MIG instance" if is_instance(grant.device) else "GPU"
        yield f"  {granted.share} x {per_gpu} vGPUs per {of} = {exact}{rounding}: {_in_limits(granted)}."
    yield from (f"  {line}" for line in _memory(granted, grant))


def _in_limits(granted: ContainerGrant) -> str:
    return f"{granted.quantity} x {granted.resource}"


def _memory(granted: ContainerGrant, grant: Grant) -> Iterator[str]:
    advice = granted.advice
    if advice.framework is None:
        yield "No framework is known for it, so no memory setting is made."
        return
    entry = advice.framework
    headroom = grant.policy.policy.memory.headroom
    yield f"Framework: {entry.name}. {entry.note}".rstrip()
    if advice.kept:
        yield f"Its own {', '.join(advice.kept)} is within the share and stays."
    elif advice.unread:
        yield f"Its own {', '.join(advice.unread)} cannot be read, and stays: it is a part of what the container has."
    elif entry.memory is None:
        yield "It needs no memory setting."
    elif grant.strategy == PARTITION:
        yield "It sees its partition as a whole device, so its own default is right."
    elif _is_whole(granted, grant):
        yield "It has whole GPUs, so its own default is right."
    elif entry.memory.of == "free" and grant.strategy == MPS:
        yield "It takes a part of the free memory, and under MPS the free memory is the share."
    elif not advice.warning:
        basis = grant.policy.policy.memory.basis
        share = milli_text(min(granted.fraction_milli + headroom, MILLI_PER_GPU))
        less = f" less {headroom} headroom ({grant.policy.source('memory.headroom')})" if headroom else ""
        yield f"Its memory: {milli_text(granted.fraction_milli)} of the GPU, the {basis} share {share}{less}."


def _device(grant: Grant) -> str:
    if is_instance(grant.device):
        return f"MIG instances of the profile {profile_of_device(grant.device)}"
    if grant.device:
        return f"GPUs that nodes of _cluster.yaml call {device_name(grant.device)}, and of no others"
    if any(map(is_instance, grant.policy.policy.shared_devices)):
        return "whole GPUs, not of MIG instances"
    return "GPUs without a device of their own"


def _is_whole(granted: ContainerGrant, grant: Grant) -> bool:
    return granted.share.is_whole if granted.share is not None else granted.vgpus >= grant.vgpus_per_gpu


def _pod(grant: Grant) -> Iterator[str]:
    if grant.device or len(grant.policy.policy.devices) > 1:
        listed = ", ".join(grant.policy.policy.devices)
        yield f"Its shares are of {_device(grant)} (devices: {listed}, {grant.policy.source('devices')})."
    yield from _kind(grant)
    if grant.allocation == DRA:
        place = grant.policy.source("allocation")
        yield f"The scheduler chooses the GPU (allocation: dra, {place}); the pod is Pending until one has room."
        if grant.not_taken_by:
            yield f"No GPU of {' or '.join(grant.not_taken_by)} takes it: they have other sizes."
    says = grant.policy.policy.mps.attach
    if grant.attaches_in_pod:
        if says == "auto":
            yield (
                "The pod gets hostIPC and the MPS volume (mps.attach: auto); where Pod Security enforces baseline or "
                "restricted it gets neither, and the device plugin mounts the MPS pipe."
            )
        else:
            yield "The pod gets hostIPC and the MPS volume (mps.attach: pod), so Pod Security baseline would reject it."
    elif grant.strategy == MPS:
        why = ", and Pod Security enforces baseline or restricted here" if says == "auto" else ""
        yield f"The device plugin mounts the MPS pipe (mps.attach: {says}{why}); nothing is attached in the pod."
    elif grant.strategy == PARTITION:
        chosen = f"strategy: partition, {grant.policy.source('strategy')}"
        yield f"The hardware holds the limits of a partition, and the plugin of its maker allocates it ({chosen})."
    elif grant.strategy == WHOLE:
        yield "Nobody else is on them: no MPS, no limits, and nothing is attached in the pod."
    else:
        yield "The GPU is time-sliced: no MPS, and no limit on memory but the framework's own."
    if grant.hidden:
        names = ", ".join(quoted(one.slot.name, 63) for one in grant.hidden)
        yield f"Without a share, so no GPU is visible in: {names}."


def _kind(grant: Grant) -> Iterator[str]:
    """Say of which kind a pod's GPUs are, where there is a choice: when a container asks for whole ones."""
    if grant.strategy == PARTITION or not any(_is_whole(one, grant) for one in grant.containers):
        return
    says = grant.policy.policy.share.whole
    place = f"share.whole: {says}, {grant.policy.source('share.whole')}"
    if grant.strategy == WHOLE:
        yield f"The pod gets whole GPUs, since all its shares are whole numbers ({place})."
    elif says == "vgpus":
        yield f"A whole GPU is allocated as all its vGPUs here ({place})."
    elif not all(one.share is None or one.share.is_whole for one in grant.containers):
        yield f"One of its shares is a part of a GPU, so the pod gets vGPUs for all and no whole GPUs ({place})."
    else:
        yield f"A limit names {grant.resource}, so the pod gets vGPUs and no whole GPUs ({place})."
