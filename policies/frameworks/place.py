"""Where a framework in a container would be told its share: whether an argument reaches it."""

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
