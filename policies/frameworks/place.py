"""Which frameworks run in a container, and where their settings would be made."""

from collections.abc import Sequence
from typing import NamedTuple

from policies.frameworks.command_line import CommandLine
from policies.frameworks.framework import Framework
from policies.pod import Container


class Place(NamedTuple):
    """Where a setting would be made."""

    container: Container
    line: CommandLine
    framework: Framework
    is_own_image: bool  # whether the image is one of the framework's own

    def has_argument(self) -> bool:
        """Whether it is an argument that would be made."""
        return self.framework.memory is not None and self.framework.memory.spellings[0].variable is None

    def takes_arguments(self) -> bool:
        """Whether what is appended to `args` reaches the program. Without a command, `args` replace the image's CMD."""
        own_image = self.framework.image_takes_arguments and self.is_own_image
        if not self.line.words:
            return own_image
        if self.line.ends_options:
            return False
        if not self.container.command and self.line.words[0].startswith("-"):
            return True  # options alone go to the image's entry point, which takes them whoever built it
        if self.line.runs_through_shell:
            return False
        starts = any(self.line.starts(program) for program in self.framework.programs)
        return starts or (own_image and not self.container.command)


def detected(
    container: Container, *, image: Framework | None, program: Framework | None, within: Framework | None
) -> list[Framework]:
    """
    Believe the program, but where the image takes arguments and is given nothing else.

    What a launcher or a shell's text starts, *within* a command, counts beside the image, whose variables it may read.
    """
    if program is not None and not (image is not None and image.image_takes_arguments and not container.command):
        return [program]
    found = [one for one in (image, within) if one is not None]
    return found[:1] if image is within else found


def places_of(
    container: Container, line: CommandLine, frameworks: Sequence[Framework], image: Framework | None
) -> list[Place]:
    """Make one for each framework, but for an image's whose argument would go to the program of another one."""
    places = [Place(container, line, one, one is image) for one in frameworks]
    if len(places) > 1 and places[0].has_argument() and not places[0].takes_arguments():
        return places[1:]
    return places
