"""Which commands are tools, and what of their words they may write somewhere."""

from policies.frameworks.shell.command_words import CommandWords
from policies.frameworks.shell.own_configs import has_own_config, is_config, without_config
from policies.frameworks.shell.script import Command, Reference
from policies.frameworks.shell.tools import tool, without_pattern, writes_no_word
from policies.frameworks.shell_texts import ShellTexts


class ShellTools(ShellTexts):
    """Tells tools from all other programs."""

    def _is_function(self, program: str) -> bool:
        return program in self._functions or "alias" in self._functions

    def _tool(self, program: str) -> str:
        return "" if self._is_function(program) else tool(program)

    def _is_tool(self, words: CommandWords) -> bool:
        return bool(self._tool(words.line[0])) and not words.runs_another

    def _tool_behind(self, words: CommandWords) -> str:
        """Return the tool that a command starts, behind wrappers or not, if it starts nothing else."""
        at, takes_text = words.unwrapped
        name = "" if takes_text or at >= len(words.line) else self._tool(words.line[at])
        return "" if not name or words.behind(at).runs_another else name

    def _may_begin_later(self, command: Command) -> bool:
        """Whether its program may be a later one of the words that it seems to begin with."""
        references = (part for word in command.words for part in word if isinstance(part, Reference))
        return self._values.shifts and not self._tool(command.program) and any(one.is_all for one in references)

    def _without_config(self, said: CommandWords, words: CommandWords) -> CommandWords:
        """Leave out of what is *said* of a command the option `--config` that is its program's own."""
        if self._depth != self._runs or not any(map(is_config, words.every())):
            return said
        if any(map(self._is_function, words.line[: words.unwrapped[0] + 1])) or not has_own_config(words.line):
            return said
        return CommandWords([[tuple(map(without_config, way)) for way in ways] for ways in said.places])

    def _written_by(self, name: str, words: CommandWords) -> CommandWords:
        """Return which of its *words* a tool may write somewhere, in a text that shells run as a whole."""
        if self._depth != self._runs:
            return words  # of another language, "[ ]" is a list
        if writes_no_word(name, words.every()):
            return CommandWords([])
        return CommandWords(
            [[tuple(without_pattern(name, one) for one in way) for way in ways] for ways in words.places]
        )
