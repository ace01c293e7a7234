"""What is valid in a directory of policy files and still looks like an oversight: the warnings of `policy check`."""

from collections.abc import Iterator, Sequence

from policies.cluster import Cluster
from policies.contract import (
    DRA,
    HOST_PATHS_ANNOTATION,
    MILLI_PER_GPU,
    MODE_LABEL,
    MPS,
    NAMESPACE,
    PARTITION,
)
from policies.device_names import device_name, is_instance
from policies.errors import Problem
from policies.frameworks.replaced import no_longer_judged
from policies.host_paths import HostPathList
from policies.own_grids import never_granted
from policies.partitions import choices
from policies.policy import EffectivePolicy
from policies.policy_set import PolicySet
from policies.reading.kustomized import Kustomization, listed_otherwise
from policies.reading.layers import CLUSTER_FILE, DEFAULT_FILE
from policies.reading.too_many_vgpus import too_many_for_mps
from policies.share import Share, largest_exact, largest_whole, milli_text
from policies.sizes import is_too_fine, too_fine

# What says which shares there can be.
_BOUNDING = ("share.minimum", "share.maximum", "share.podMaximum", "share.whole", "strategy", "partition", "devices")


def oversights(policies: PolicySet, files: Sequence[str], kustomization: Kustomization | None) -> Iterator[Problem]:
    """
    Yield what should be looked at, though the *files* are valid.

    Args:
        policies: What they say.
        files: The names of the policy files.
        kustomization: kustomize's file in the same directory, if there is one.
    """
    if not files:
        message = f"no policy files, so the built-in defaults hold: name another directory, or write {DEFAULT_FILE}"
        yield Problem("", 0, "", message)
    yield from _between_vgpus(policies.default, policies.cluster, DEFAULT_FILE)
    yield from _nothing_within(policies.default, policies.cluster, DEFAULT_FILE)
    yield from _nothing_exact_within(policies.default, policies.cluster, DEFAULT_FILE)
    yield from _beside("NAME", policies.default, DEFAULT_FILE)
    yield from _above_one_gpu(policies.default, DEFAULT_FILE)
    yield from _instances_without_mps(policies.default, DEFAULT_FILE)
    yield from _without_classes(policies.default, policies.cluster, DEFAULT_FILE)
    yield from too_many_for_mps(policies)
    yield from _in_written_paths(policies)
    yield from (Problem(CLUSTER_FILE, 0, "nodes", message) for message in never_granted(policies.cluster))
    replaced = no_longer_judged(policies.cluster.frameworks)
    yield from (Problem(CLUSTER_FILE, 0, "frameworks", message) for message in replaced)
    for namespace, policy in policies.namespaces.items():
        file = f"{namespace}.yaml"
        if namespace == NAMESPACE:
            message = "never used, since the API server calls no webhook for the pods of gpu-share itself: remove it"
            yield Problem(file, 0, "", message)
        elif policies.is_exempt(namespace):
            message = f"never used, since exemptNamespaces in {CLUSTER_FILE} names {namespace}: remove one of the two"
            yield Problem(file, 0, "", message)
        else:
            yield from _between_vgpus(policy, policies.cluster, file)
            yield from _nothing_within(policy, policies.cluster, file)
            yield from _nothing_exact_within(policy, policies.cluster, file)
            yield from _beside(namespace, policy, file)
            yield from _above_one_gpu(policy, file)
            yield from _instances_without_mps(policy, file)
            yield from _without_classes(policy, policies.cluster, file)
    if kustomization is not None:
        yield from listed_otherwise(kustomization, files)


def _beside(namespace: str, policy: EffectivePolicy, file: str) -> Iterator[Problem]:
    """Yield what the namespace itself must say for the policy in the API server, where this *file* says it."""
    yield from _without_label(namespace, policy, file)
    source, rules = policy.source("hostPaths"), policy.policy.host_paths
    if rules and source.file == file:
        paths = ",".join(f"{rule.path}:rw" if rule.writable else rule.path for rule in rules)
        command = f"kubectl annotate --overwrite namespace {namespace} {HOST_PATHS_ANNOTATION}={paths}"
        message = f"without an annotation on the namespace the API server denies pods that mount them: {command}"
        yield Problem(file, source.line, "hostPaths", message)


def _in_written_paths(policies: PolicySet) -> Iterator[Problem]:
    """Yield the paths of one file that lie in what another one lists as writable; those of one file are a problem."""
    every = (policies.default, *policies.namespaces.values())
    written = policies.written_host_paths
    for source, rules in {one.source("hostPaths"): one.policy.host_paths for one in every}.items():
        listed = HostPathList.of(rules, written.keys())
        for rule in rules:
            above = listed.written_above(rule.path)
            if above and written[above].file != source.file:
                why = f"which {written[above]} lists as writable: a pod may put a link in its place"
                message = f"{rule.path} lies in {above}, {why}, so it is denied everywhere; remove one of the two"
                yield Problem(source.file, source.line, "hostPaths", message)


def _without_label(namespace: str, policy: EffectivePolicy, file: str) -> Iterator[Problem]:
    source = policy.source("mode")
    if policy.policy.mode == "warn" and source.file == file:
        command = f"kubectl label namespace {namespace} {MODE_LABEL}=warn"
        yield Problem(
            file, source.line, "mode", f"without a label on the namespace the API server denies these pods: {command}"
        )


def _between_vgpus(policy: EffectivePolicy, cluster: Cluster, file: str) -> Iterator[Problem]:
    """Yield the upper bounds that no share can reach, since whole vGPUs are granted."""
    rules = policy.policy.share
    bounds = {"share.maximum": rules.maximum, "share.podMaximum": rules.pod_maximum}
    for field, bound in bounds.items():
        source = policy.source(field)
        for device, per_gpu in _divided(policy, cluster):
            if bound is None or bound.is_exact(per_gpu) or source.file != file:
                continue
            count = largest_whole(bound, per_gpu)
            if count and bound == -(-count * MILLI_PER_GPU // per_gpu):  # no decimal of three places is nearer
                continue
            most = _granted_at_most(policy, bound, per_gpu)
            of = f"the device {device_name(device)}" if device else "a GPU"
            message = f"{bound} of {of} is {milli_text(bound * per_gpu)} of {per_gpu} vGPUs: {most}; use whole vGPUs"
            yield Problem(file, source.line, field, message)


def _granted_at_most(policy: EffectivePolicy, bound: Share, per_gpu: int) -> str:
    count, exact = largest_whole(bound, per_gpu), largest_whole(Share(largest_exact(bound, per_gpu)), per_gpu)
    if not count:
        return "less than one, so no share is granted"
    if policy.policy.share.rounding == "exact" and exact < count:
        by_annotation = (
            f"{exact or 'none'} by annotation, as share.rounding ({policy.source('share.rounding')}) is exact"
        )
        return f"at most {count} can be granted by a limit, and {by_annotation}"
    return f"at most {count} can be granted"


def _divided(policy: EffectivePolicy, cluster: Cluster) -> Iterator[tuple[str, int]]:
    """Yield the devices that a policy's vGPUs are of, each with the number of them; partitions are none."""
    if policy.policy.strategy != PARTITION:
        yield from ((device, cluster.parts(MPS, device)) for device in policy.policy.shared_devices)


def _nothing_within(policy: EffectivePolicy, cluster: Cluster, file: str) -> Iterator[Problem]:
    """Yield bounds that no share lies between, so that each is denied."""
    rules, lines = policy.policy, [one.line for one in map(policy.source, _BOUNDING) if one.file == file]
    if not rules.enabled or not lines:
        return
    least, most = rules.share.minimum, min(rules.share.maximum, rules.share.largest_pod)
    if rules.strategy == PARTITION:
        table = cluster.partitions.get(rules.partition or "", ())
        has_whole = any(one.share == MILLI_PER_GPU for one in table) and _is_whole_within(least, most)
        if not has_whole and not any(least <= one.share <= most for one in table):
            message = f"no partition is {_from_to(policy)}: widen share, so that it has {choices(table)}"
            yield Problem(file, lines[0], "share", f"every share is denied: {message}")
        return
    for device, per_gpu in _divided(policy, cluster):
        count = min(largest_whole(most, per_gpu), per_gpu)
        if not count or count * MILLI_PER_GPU >= least * per_gpu:
            continue
        reaches_several = not is_instance(device) and (rules.strategy != MPS or rules.share.whole == "gpus")
        if not (reaches_several and _is_whole_within(least, most)):
            message = f"no number of {per_gpu} vGPUs is {_from_to(policy)}: widen share"
            yield Problem(file, lines[0], "share", f"{_every_share(policy, device)} is denied: {message}")


def _nothing_exact_within(policy: EffectivePolicy, cluster: Cluster, file: str) -> Iterator[Problem]:
    """Yield bounds between which are vGPUs and no decimal that is a whole number of them, where it must be one."""
    rules, fields = policy.policy, ("share.rounding", *_BOUNDING)
    line = next((one.line for one in map(policy.source, fields) if one.file == file), 0)
    if not rules.enabled or rules.share.rounding != "exact" or not line:
        return
    least, most = rules.share.minimum, min(rules.share.maximum, rules.share.largest_pod, Share(MILLI_PER_GPU))
    for device, per_gpu in _divided(policy, cluster):
        if largest_exact(most, per_gpu) < least and least * per_gpu <= largest_whole(most, per_gpu) * MILLI_PER_GPU:
            message = (
                f"share.rounding is exact ({policy.source('share.rounding')}), and no decimal {_from_to(policy)} is a "
                f"whole number of {per_gpu} vGPUs: write share: {{rounding: up}}, or ask for vGPUs by a limit"
            )
            who = f"{_every_share(policy, device)} by annotation"
            yield Problem(file, line, "share", f"{who} is denied: {message}")


def _from_to(policy: EffectivePolicy) -> str:
    """Say what the bounds of a share are, and where they stand, which may be two files."""
    rules = policy.policy.share
    most, upper = min((rules.maximum, "share.maximum"), (rules.largest_pod, "share.podMaximum"))
    least_at, most_at = policy.source("share.minimum"), policy.source(upper)
    return f"from share.minimum {rules.minimum} ({least_at}) to {upper} {most} ({most_at})"


def _every_share(policy: EffectivePolicy, device: str) -> str:
    if device:
        return f"every share of the device {device_name(device)}"
    return "every share" if len(policy.policy.shared_devices) == 1 else "every share of a GPU"


def _is_whole_within(least: int, most: int) -> bool:
    """Whether a number of whole GPUs is within two bounds in thousandths of one."""
    return most // MILLI_PER_GPU * MILLI_PER_GPU >= max(least, MILLI_PER_GPU)


def _without_classes(policy: EffectivePolicy, cluster: Cluster, file: str) -> Iterator[Problem]:
    """Yield a way of allocation that a grid is too fine for: every share is denied."""
    source = policy.source("allocation")
    if policy.policy.allocation != DRA or source.file != file:
        return
    for device, per_gpu in _divided(policy, cluster):
        if is_too_fine(per_gpu):
            yield Problem(
                file, source.line, "allocation", f"{_every_share(policy, device)} is denied: {too_fine(per_gpu)}"
            )


def _above_one_gpu(policy: EffectivePolicy, file: str) -> Iterator[Problem]:
    rules, fields = policy.policy, ("share.maximum", "strategy", "share.whole")
    above = rules.strategy == MPS and rules.share.whole == "vgpus" and rules.share.maximum > MILLI_PER_GPU
    blamed = next((one for one in fields if policy.source(one).file == file), None)
    if above and blamed is not None:
        source, most = policy.source(blamed), policy.source("share.maximum")
        what = (
            "a share" if blamed == "share.maximum" else f"share.maximum is {rules.share.maximum} ({most}), and a share"
        )
        fix = "where a process reaches one GPU: write share: {whole: gpus} too"
        yield Problem(file, source.line, blamed, f"{what} above 1 is denied under mps, {fix}")


def _instances_without_mps(policy: EffectivePolicy, file: str) -> Iterator[Problem]:
    """Yield MIG instances in a policy whose shares they cannot be: all, or all that are less than one of them."""
    rules = policy.policy
    has_instances = any(map(is_instance, rules.shared_devices))
    blamed = next((one for one in ("devices", "strategy") if policy.source(one).file == file), None)
    if rules.strategy == MPS or not has_instances or blamed is None:
        return
    which = "MIG instances" if blamed == "devices" else f"the MIG instances of devices ({policy.source('devices')})"
    what = "no share is of them" if rules.strategy == PARTITION else "a share below 1 of them is denied"
    message = f"{which} are shared by mps or given whole, and under {rules.strategy} {what}: write strategy: mps"
    yield Problem(file, policy.source(blamed).line, blamed, message)
