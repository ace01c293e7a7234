"""How much one pod may hold: more than any real one, and little enough that a decision on it costs milliseconds."""

from collections.abc import Sequence
from itertools import chain
from typing import Final

from policies.contract import GRANT_ANNOTATION, MPS_VOLUME
from policies.denial import DeniedError
from policies.handlers import commands_beside
from policies.pod import Pod, Slot

MOST_SEPARATORS: Final = 128 * 1024  # commas in the whole review: of lists and mappings, and in its texts

# Of one pod, over all its containers. Far above real pods, which have tens of each.
LONGEST_TEXT: Final = 256 * 1024  # characters of a word or a value: Linux with pages of 4 KiB takes half as many
MOST_CONTAINERS: Final = 512
MOST_SHARES: Final = 64  # containers with a share
MOST_WORDS: Final = 2048  # of command and args
MOST_VARIABLES: Final = 4096
MOST_MOUNTS: Final = 1024
MOST_QUANTITIES: Final = 2048  # of resources, limits and requests
MOST_OTHERS: Final = 1024  # tolerations, references in envFrom, added capabilities
# Beside what comes with a share: the policies in the API server count that too, and admit one more.
MOST_VOLUMES: Final = 255
MOST_ANNOTATIONS: Final = 1023
MOST_NAMED: Final = 16 * 1024  # characters in the names of containers, which are in the answer too
_OF_A_GRANT: Final = 16 * MOST_SHARES  # variables, words and the like, with those of containers without a share
_LIMITS: Final = (  # and what comes with a share, so that a pod is granted again as it was
    ("characters in the names of its containers", MOST_NAMED, 0),
    ("words in its command lines, hooks and probes", MOST_WORDS, _OF_A_GRANT),
    ("variables", MOST_VARIABLES, _OF_A_GRANT),
    ("volume mounts", MOST_MOUNTS, _OF_A_GRANT),
    ("quantities of resources", MOST_QUANTITIES, _OF_A_GRANT),
    ("references in envFrom", MOST_OTHERS, 0),
    ("added capabilities", MOST_OTHERS, 0),
    ("volumes", MOST_VOLUMES, 0),
    ("tolerations", MOST_OTHERS, _OF_A_GRANT),
    ("annotations", MOST_ANNOTATIONS, 0),
)
_LOWEST_LIMIT: Final = min(most for _, most, _ in _LIMITS)


def check_size(pod: Pod, containers: Sequence[Slot]) -> None:
    """
    See that the pod is not larger than any real one.

    Raises:
        DeniedError: If it is: nothing else has to be looked at.
    """
    if len(containers) > MOST_CONTAINERS:
        raise _too_large(len(containers), "containers", MOST_CONTAINERS)
    counts, longest = _counts(pod, containers)
    if sum(counts) > _LOWEST_LIMIT:  # of almost no pod
        has_grant = GRANT_ANNOTATION in (pod.metadata.annotations or {})
        for count, (what, most, of_a_grant) in zip(counts, _LIMITS, strict=True):
            if count > most + of_a_grant * has_grant:
                raise _too_large(count, what, most)
    if longest > LONGEST_TEXT:
        raise _too_large(longest, "characters in one word or variable", LONGEST_TEXT)


def check_separators(review: bytes | bytearray) -> None:
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


def _counts(pod: Pod, containers: Sequence[Slot]) -> tuple[tuple[int, ...], int]:
    """Count what a pod and its containers have, in the order of the limits, and the characters of its longest text."""
    named = words = variables = mounts = quantities = references = capabilities = longest = 0
    for slot in containers:
        one = slot.container
        named += len(slot.name)
        lengths = [*map(len, chain(one.command or (), one.args or (), *commands_beside(one)))]
        words += len(lengths)
        if one.env:
            variables += len(one.env)
            lengths += [len(variable.value) for variable in one.env if variable.value]
        longest = max(longest, *lengths) if lengths else longest
        mounts += len(one.volume_mounts or ())
        references += len(one.env_from or ())
        if one.resources:
            quantities += len(one.resources.limits or ()) + len(one.resources.requests or ())
        if one.security_context and one.security_context.capabilities:
            capabilities += len(one.security_context.capabilities.add or ())
    volumes, tolerations = _own_volumes(pod), len(pod.spec.tolerations or ())
    written = pod.metadata.annotations or {}
    annotations = len(written) - (GRANT_ANNOTATION in written)
    counts = (named, words, variables, mounts, quantities, references, capabilities, volumes, tolerations, annotations)
    return counts, longest


def _own_volumes(pod: Pod) -> int:
    volumes = pod.spec.volumes or ()
    return len(volumes) - (len(volumes) > MOST_VOLUMES and any(one.name == MPS_VOLUME for one in volumes))


def _too_large(count: int, what: str, most: int) -> DeniedError:
    return DeniedError("PodTooLarge", f"The pod has {count} {what}, at most {most} are allowed", "Make the pod smaller")
