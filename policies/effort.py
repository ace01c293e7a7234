"""How long a pod takes beside the reading of its shells' texts, in steps of about a microsecond, by what it holds."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from policies.denial import DeniedError
from policies.handlers import commands_beside
from policies.pod import Container, Pod, Slot

MOST_BESIDE: Final = 6500  # steps for a pod of a piece or less, and for each piece of a larger one
_PIECE: Final = 100 * 1024  # characters
_CHARACTERS_OF_STEP: Final = 16  # of words and variables, which shells' texts are left less for
_CHARACTERS_LOOKED_THROUGH: Final = 24  # in a step, whatever they are
_STEPS_OF_WORD: Final = 3
_STEPS_OF_REFERENCE: Final = 3  # of a variable to others, beside the one of each
_STEPS_OF_CONTAINER: Final = 4  # but the first
_STEPS_OF_SHARE: Final = 20  # likewise, of one with a share, beside those of what is looked at in it
_STEPS_OF_QUANTITY: Final = 3
_STEPS_OF_MOUNT: Final = 2
_STEPS_OF_HOST_PATH: Final = 12
_CHARACTERS_OF_PATH: Final = 12  # that take a step
_OTHERS_OF_STEP: Final = 2


class Effort(NamedTuple):
    """What a pod takes."""

    counted: int  # steps of what is counted
    characters: int

    @property
    def steps(self) -> int:
        """The steps that its shells' texts are left less."""
        return self.counted + self.characters // _CHARACTERS_OF_STEP

    @property
    def is_too_much(self) -> bool:
        """Whether it is more than its size may take, all together."""
        pieces = max(self.characters / _PIECE, 1)
        return self.counted + self.characters / _CHARACTERS_LOOKED_THROUGH > MOST_BESIDE * pieces


def effort_of(containers: Sequence[Container]) -> Effort:
    """Count what words, variables, quantities and mounts take."""
    characters = words = variables = quantities = mounts = 0
    for one in containers:
        for line in (one.command or (), one.args or (), *commands_beside(one)):
            words += len(line)
            characters += sum(map(len, line))
        if one.env:
            values = [variable.value for variable in one.env if variable.value]
            characters += sum(map(len, values))
            variables += len(one.env) + _STEPS_OF_REFERENCE * sum(["$(" in value for value in values])
        if one.resources:
            quantities += len(one.resources.limits or ()) + len(one.resources.requests or ())
        mounts += len(one.volume_mounts or ())
    counted = _STEPS_OF_WORD * words + variables + _STEPS_OF_QUANTITY * quantities + _STEPS_OF_MOUNT * mounts
    return Effort(counted + _STEPS_OF_CONTAINER * (len(containers) - 1), characters)


def check_effort(pod: Pod, containers: Sequence[Slot]) -> int:
    """
    Count the steps that a pod takes beside its shells' texts.

    Raises:
        DeniedError: If it holds more than any real one, each in its bounds but all together.
    """
    counted, characters = effort_of([one.container for one in containers])
    paths = [one.host_path.path for one in pod.spec.volumes or () if one.host_path is not None]
    if paths:
        counted += _STEPS_OF_HOST_PATH * len(paths) + sum(map(len, paths)) // _CHARACTERS_OF_PATH
    others = len(pod.metadata.annotations or ()) + len(pod.spec.tolerations or ()) + len(pod.spec.volumes or ())
    effort = Effort(counted + others // _OTHERS_OF_STEP, characters)
    if effort.is_too_much:
        what = "The pod's words, variables, quantities, mounts and volumes are together more than is looked through"
        raise DeniedError("PodTooLarge", what, "Make the pod smaller")
    return effort.steps


def steps_of_shares(shares: int) -> int:
    """Count the steps that so many containers with a share take beside."""
    return _STEPS_OF_SHARE * (shares - 1)
