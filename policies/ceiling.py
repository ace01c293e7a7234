"""The most of one GPU that the policies in force let one container have: no limit for all of them may be below it."""

from policies.contract import MILLI_PER_GPU, MPS, WHOLE, SharingStrategy
from policies.device_names import GPU_DEVICE
from policies.policy import EffectivePolicy
from policies.policy_set import PolicySet
from policies.share import largest_whole


def largest_vgpus(policies: PolicySet, strategy: SharingStrategy, device: str = GPU_DEVICE) -> int:
    """
    Count the vGPUs of one GPU that any policy in force lets one container hold, of GPUs under this sharing strategy.

    They are parts of the *device*. Whole GPUs count 1. 0 where no policy grants any, and a whole GPU where one is
    broken.

    Static pods and pods of exempt namespaces are the administrators' own and are not counted: no policy says what they
    hold. Nor is what was granted before a policy changed. Who sets a limit by this number looks at what the tenants of
    the GPU really hold as well.
    """
    per_gpu = policies.cluster.parts(strategy, device)
    counted = (policy for namespace, policy in policies.namespaces.items() if not policies.is_exempt(namespace))
    return max(_largest(policy, strategy, device, per_gpu) for policy in (policies.default, *counted))


def _largest(policy: EffectivePolicy, strategy: SharingStrategy, device: str, per_gpu: int) -> int:
    rules = policy.policy
    if policy.broken is not None:
        return per_gpu  # its pods may have been granted anything before, and still are by webhooks that know how much
    if rules.mode == "warn":
        return per_gpu  # what would be denied is admitted as it came, with whatever limits it has
    applies = rules.share.whole == "gpus" if strategy == WHOLE else rules.strategy == strategy
    if not rules.enabled or not applies or device not in rules.shared_devices:
        return 0
    if strategy == MPS and rules.share.minimum > MILLI_PER_GPU:
        return 0  # under MPS nobody gets more than one GPU
    largest = min(rules.share.maximum, rules.share.largest_pod)
    if largest >= MILLI_PER_GPU:
        return per_gpu
    if strategy == WHOLE:
        return 0
    most = largest_whole(largest, per_gpu)
    return most if most * MILLI_PER_GPU >= rules.share.minimum * per_gpu else 0
