"""
How much a policy lets a container and a pod have.

Upper bounds hold for what is granted, whole vGPUs, and never only for what was asked: docs/decisions/0015.
"""

from collections.abc import Sequence

from policies.contract import DRA, MILLI_PER_GPU, MOST_GPUS_TOGETHER, MPS, PARTITION, SHARE_ANNOTATION, WHOLE
from policies.denial import Findings
from policies.errors import quoted
from policies.kind import Kind
from policies.partitions import choices
from policies.peak import peak
from policies.pod import Slot, named
from policies.policy import EffectivePolicy, ShareRules
from policies.request import Ask
from policies.share import Share, largest_exact, largest_whole, milli_text, smallest_exact


def check_share(ask: Ask, policy: EffectivePolicy, found: Findings) -> None:
    """Deny a share that is too small, too large, or not exact where it must be; warn of a rounding."""
    rules, per_gpu, milli = policy.policy.share, ask.kind.per_gpu, _milli_times_vgpus(ask)
    if ask.vgpus <= per_gpu and rules.minimum * per_gpu <= milli <= rules.maximum * per_gpu:  # as almost always
        _check_rounding(ask, policy, found)
    else:
        _check_bounds(ask, policy, found)


def _check_bounds(ask: Ask, policy: EffectivePolicy, found: Findings) -> None:
    rules, per_gpu, milli = policy.policy.share, ask.kind.per_gpu, _milli_times_vgpus(ask)
    asked = ask.kind.counted(ask.vgpus) if ask.share is None else f"{ask.share} of a GPU"
    if milli < rules.minimum * per_gpu:
        least, fix = _least(ask, rules)
        found.deny(
            "ShareBelowMinimum",
            f"{named(ask.slot)} asks for {asked}, at least {least} is allowed here",
            fix,
            by=policy.source("share.minimum"),
        )
    elif ask.kind.is_of_instances and ask.vgpus > per_gpu:
        found.deny(
            "ShareAboveMaximum",
            f"{named(ask.slot)} asks for {asked}, and a program reaches one MIG instance, not several",
            'Ask for "1" or less' if ask.share is not None else f"Ask for {ask.kind.counted(per_gpu)} or less",
        )
    elif ask.kind.strategy == MPS and ask.vgpus > per_gpu and rules.maximum > MILLI_PER_GPU:
        found.deny(
            "ShareAboveMaximum",
            f"{named(ask.slot)} asks for {asked}, and a process reaches one GPU through MPS, not several",
            _in_place_of_several(ask, rules),
            by=policy.source("share.whole"),
        )
    elif milli > rules.maximum * per_gpu:
        _deny_above_maximum(ask, f"asks for {asked}", policy, found)
    elif ask.vgpus > per_gpu and ask.vgpus % per_gpu:
        found.deny(
            "ShareMalformed",
            f"{named(ask.slot)} asks for {ask.vgpus} vGPUs: more than one GPU's {per_gpu} and not whole GPUs",
            f"Ask for at most {per_gpu}, or a multiple of it",
        )
    elif ask.kind.allocation == DRA and ask.vgpus > per_gpu * MOST_GPUS_TOGETHER:
        found.deny(
            "ShareAboveMaximum",
            f"{named(ask.slot)} asks for {asked}, at most {MOST_GPUS_TOGETHER} GPUs are allocated together by dra",
            f'Ask for "{MOST_GPUS_TOGETHER}" or less',
            by=policy.source("allocation"),
        )
    else:
        _check_rounding(ask, policy, found)


def _in_place_of_several(ask: Ask, rules: ShareRules) -> str:
    """Say what to do in place of several GPUs under MPS."""
    if rules.whole == "gpus":
        return "Ask for whole GPUs in all of the pod, by annotation"
    if rules.minimum > MILLI_PER_GPU:
        return "Have the policy say share: {whole: gpus}"
    one = '"1"' if ask.share is not None else ask.kind.counted(ask.kind.per_gpu)
    return f"Ask for {one} or less, or have the policy say share: {{whole: gpus}}"


def _check_rounding(ask: Ask, policy: EffectivePolicy, found: Findings) -> None:
    per_gpu, rules = ask.kind.per_gpu, policy.policy.share
    if ask.kind.strategy == PARTITION:
        _check_partition(ask, policy, found)
        return
    if ask.share is None or ask.share.is_exact(per_gpu):
        return
    exact = f"{milli_text(ask.share * per_gpu)} of {per_gpu} vGPUs"
    if rules.rounding == "exact":
        near = ((ask.vgpus - less) * MILLI_PER_GPU for less in (1, 0))
        exact_ones = (one // per_gpu for one in near if one and one % per_gpu == 0)
        choices = [f'"{milli_text(one)}"' for one in exact_ones if rules.minimum <= one <= rules.maximum]
        found.deny(
            "NotWholeVgpus",
            f"{named(ask.slot)} asks for {ask.share} of a GPU, that is {exact}",
            f"Ask for {' or '.join(choices)}" if choices else _in_vgpus(ask, rules),
            by=policy.source("share.rounding"),
        )
    elif ask.vgpus * MILLI_PER_GPU > rules.maximum * per_gpu:
        asked = f"asks for {ask.share} of a GPU, which is rounded up to {ask.kind.counted(ask.vgpus)}"
        _deny_above_maximum(ask, asked, policy, found)
    else:
        found.warnings.append(
            f"{quoted(ask.slot.name, 30)}: {ask.share} of a GPU is {exact}, rounded up to {ask.vgpus}"
        )


def _check_partition(ask: Ask, policy: EffectivePolicy, found: Findings) -> None:
    """Deny a share that is no partition where it must be one, or whose partition is too large; warn of others."""
    rules = policy.policy.share
    if ask.share is None or ask.vgpus == ask.share:
        return
    becomes = f"{ask.kind.in_limits(ask.vgpus)}, {milli_text(ask.vgpus)} of a GPU"
    if rules.rounding == "exact":
        what = f"{named(ask.slot)} asks for {ask.share} of a GPU, and the smallest partition that holds it is {becomes}"
        found.deny("NotWholeVgpus", what, _partitions(ask.kind, rules), by=policy.source("share.rounding"))
    elif ask.vgpus > rules.maximum:
        _deny_above_maximum(ask, f"asks for {ask.share} of a GPU, which is {becomes}", policy, found)
    else:
        found.warn(f"{quoted(ask.slot.name, 30)}: {ask.share} of a GPU gets {becomes}")


def _partitions(kind: Kind, rules: ShareRules) -> str:
    """Say which partitions the bounds leave."""
    left = choices(kind.partitions, least=rules.minimum, most=rules.maximum)
    return f"Ask for {left}" if left else _NO_PARTITION


def _in_vgpus(ask: Ask, rules: ShareRules) -> str:
    """What to do where no decimal near the share is a whole number of vGPUs."""
    if rules.minimum * ask.kind.per_gpu <= ask.vgpus * MILLI_PER_GPU <= rules.maximum * ask.kind.per_gpu:
        return f"Ask for {ask.kind.counted(ask.vgpus)} by a limit"
    return f"Ask for another share between {rules.minimum} and {rules.maximum}"


def _deny_above_maximum(ask: Ask, asked: str, policy: EffectivePolicy, found: Findings) -> None:
    most, fix = _most(ask, policy.policy.share)
    what = f"{named(ask.slot)} {asked}, at most {most} is allowed here"
    found.deny("ShareAboveMaximum", what, fix, by=policy.source("share.maximum"))


def check_sum(
    containers: Sequence[Slot], asks: Sequence[Ask], policy: EffectivePolicy, kind: Kind, found: Findings
) -> None:
    """
    Deny a pod that would be granted more than one may have.

    `spec.overhead` does not count: devices are allocated for the limits of containers alone.
    """
    if len(asks) == 1:  # one holds what it asks for, whenever it runs
        held = asks[0].vgpus
    else:
        held = peak(containers, {(ask.slot.group, ask.slot.index): ask.vgpus for ask in asks}, kind)
    largest = policy.policy.share.largest_pod
    if held * MILLI_PER_GPU <= largest * kind.per_gpu:
        return
    count = largest_whole(largest, kind.per_gpu)
    share = f"{milli_text(-(-held * MILLI_PER_GPU // kind.per_gpu))} of a GPU"
    if all(ask.share is None for ask in asks):
        together, most = f"ask for {kind.counted(held)}", _with_share(count, largest, kind)
    elif all(ask.share is None or ask.share.is_exact(kind.per_gpu) for ask in asks):
        together, most = f"ask for {share}", f"{largest}"
    else:
        together, most = f"get {kind.counted(held)} ({share}), each share rounded up", f"{largest}"
    found.deny(
        "PodShareAboveMaximum",
        f"The pod's containers together {together}, at most {most} per pod is allowed here",
        f"Bring the sum to {kind.counted(count)} or less" if count else _NONE_FITS,
        by=policy.source("share.podMaximum"),
    )


_NO_PARTITION = "No partition fits here: ask the administrator for wider limits"
_NONE_FITS = "No whole number of vGPUs fits here: ask the administrator for wider limits"


def _milli_times_vgpus(ask: Ask) -> int:
    """What is asked, in thousandths of a GPU times vGPUs per GPU: whole for shares and for vGPUs alike."""
    return ask.share * ask.kind.per_gpu if ask.share is not None else ask.vgpus * MILLI_PER_GPU


def _least(ask: Ask, rules: ShareRules) -> tuple[str, str]:
    """Write the lower bound in the unit of what is asked, and what to do: it names the smallest that is granted."""
    bound, kind, most = rules.minimum, ask.kind, min(rules.maximum, rules.largest_pod)
    count = bound.vgpus(kind.per_gpu)
    least = f"{bound}" if ask.share is not None else _with_share(count, bound, kind)
    if count * MILLI_PER_GPU > most * kind.per_gpu:
        return least, _NONE_FITS
    if ask.share is None:
        return least, f"Ask for {kind.counted(count)} or more"
    if rules.rounding != "exact":
        return least, f'Ask for "{bound}" or more'
    if kind.strategy == PARTITION and bound < MILLI_PER_GPU:
        return least, _partitions(kind, rules)
    share = smallest_exact(bound, kind.per_gpu)
    if share > most:
        return least, f"Ask for {kind.counted(count)} or more by a limit"
    return least, f'Ask for "{milli_text(share)}" or more'


def _most(ask: Ask, rules: ShareRules) -> tuple[str, str]:
    """Write the upper bound in the unit of what is asked, and what to do: it names the largest that is granted."""
    bound, kind = rules.maximum, ask.kind
    if kind.strategy == PARTITION:
        return f"{bound} of a GPU", _partitions(kind, rules)
    count = largest_whole(bound, kind.per_gpu)
    if kind.strategy == WHOLE and not count:
        return f"{bound} of a GPU", f'Ask for "{bound}" or less by the annotation {SHARE_ANNOTATION}'
    most = f"{bound}" if ask.share is not None else _with_share(count, bound, kind) if count else f"{bound} of a GPU"
    if count * MILLI_PER_GPU < rules.minimum * kind.per_gpu or not count:
        return most, _NONE_FITS
    if ask.share is None:
        return most, f"Ask for {kind.counted(count)} or less"
    share = count * MILLI_PER_GPU // kind.per_gpu
    if rules.rounding == "exact":
        share = largest_exact(share, kind.per_gpu)
    if share < rules.minimum:
        return most, f"Ask for {kind.counted(count)} or less by a limit"
    return most, f'Ask for "{milli_text(share)}" or less'


def _with_share(count: int, bound: Share, kind: Kind) -> str:
    if kind.strategy == PARTITION:
        return f"{bound} of a GPU"
    return f"{count}" if kind.strategy == WHOLE else f"{count} ({bound} of a GPU)"
