"""How much one pod may hold: more than any real one, and little enough that a decision on it costs milliseconds."""

from collections.abc import Iterator, Sequence
from typing import Final

from policies.denial import DeniedError
from policies.pod import Pod, Slot, commands_beside

MOST_SEPARATORS: Final = 128 * 1024  # commas in the whole review: of lists and mappings, and in its texts

# Of one pod, over all its containers. Far above real pods, which have tens of each.
MOST_CONTAINERS: Final = 512
MOST_SHARES: Final = 128  # containers with a share
MOST_WORDS: Final = 4096  # of command and args
MOST_VARIABLES: Final = 4096
MOST_MOUNTS: Final = 1024
MOST_VOLUMES: Final = 256
MOST_QUANTITIES: Final = 2048  # of resources, limits and requests
MOST_OTHERS: Final = 1024  # annotations, tolerations, references in envFrom, added capabilities
MOST_NAMED: Final = 16 * 1024  # characters in the names of containers, which are in the answer too


def check_size(pod: Pod, containers: Sequence[Slot]) -> None:
    """
    See that the pod is not larger than any real one.

    Raises:
        DeniedError: If it is: nothing else has to be looked at.
    """
    if len(containers) > MOST_CONTAINERS:
        raise _too_large(len(containers), "containers", MOST_CONTAINERS)
    counted = _Counted(pod, containers)
    if counted.all <= MOST_VOLUMES and counted.named <= MOST_NAMED:  # the lowest number: true of almost every pod
        return
    for count, what, most in counted.against_limits():
        if count > most:
            raise _too_large(count, what, most)


def check_separators(review: bytes) -> None:
    """
    See that a review does not hold more, of whatever, than decoding it may take memory for.

    Raises:
        DeniedError: If so.
    """
    if len(review) > MOST_SEPARATORS and (count := review.count(b",")) > MOST_SEPARATORS:
        raise _too_large(count, "commas", MOST_SEPARATORS)


def check_shares(count: int) -> None:
    """
    See that not more containers have a share than in any real pod.

    Raises:
        DeniedError: If so.
    """
    if count > MOST_SHARES:
        raise _too_large(count, "containers with a share", MOST_SHARES)


class _Counted:
    """How much of what a pod and its containers have."""

    __slots__ = ("all", "annotations", "capabilities", "mounts", "named", "quantities", "references", "tolerations",
                 "variables", "volumes", "words")  # fmt: skip

    def __init__(self, pod: Pod, containers: Sequence[Slot]) -> None:
        words = variables = mounts = quantities = references = capabilities = named = 0
        for slot in containers:
            one = slot.container
            named += len(slot.name)
            words += len(one.command or ()) + len(one.args or ()) + sum(map(len, commands_beside(one)))
            variables += len(one.env or ())
            mounts += len(one.volume_mounts or ())
            references += len(one.env_from or ())
            if one.resources:
                quantities += len(one.resources.limits or ()) + len(one.resources.requests or ())
            if one.security_context and one.security_context.capabilities:
                capabilities += len(one.security_context.capabilities.add or ())
        self.named, self.words, self.variables, self.mounts = named, words, variables, mounts
        self.quantities, self.references, self.capabilities = quantities, references, capabilities
        self.volumes = len(pod.spec.volumes or ())
        self.tolerations = len(pod.spec.tolerations or ())
        self.annotations = len(pod.metadata.annotations or ())
        of_containers = words + variables + mounts + quantities + references + capabilities
        self.all = of_containers + self.volumes + self.tolerations + self.annotations

    def against_limits(self) -> Iterator[tuple[int, str, int]]:
        """Yield each number, what is counted, and how many there may be."""
        yield self.named, "characters in the names of its containers", MOST_NAMED
        yield self.words, "words in its command lines, hooks and probes", MOST_WORDS
        yield self.variables, "variables", MOST_VARIABLES
        yield self.mounts, "volume mounts", MOST_MOUNTS
        yield self.quantities, "quantities of resources", MOST_QUANTITIES
        yield self.references, "references in envFrom", MOST_OTHERS
        yield self.capabilities, "added capabilities", MOST_OTHERS
        yield self.volumes, "volumes", MOST_VOLUMES
        yield self.tolerations, "tolerations", MOST_OTHERS
        yield self.annotations, "annotations", MOST_OTHERS


def _too_large(count: int, what: str, most: int) -> DeniedError:
    return DeniedError("PodTooLarge", f"The pod has {count} {what}, at most {most} are allowed", "Make the pod smaller")
