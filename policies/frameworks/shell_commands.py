"""What one command may do: run a framework, a shell or a tool, and set variables for others."""

import re
from itertools import chain
from typing import Final

from policies.frameworks.command_line import SHELLS
from policies.frameworks.expansion import A_VALUE, ANYTHING, UNREAD, without_implied
from policies.frameworks.shell.builtins import DECLARING, positional
from policies.frameworks.shell.command_words import Call, CommandWords
from policies.frameworks.shell.options import (
    has_odd_option,
    is_input,
    loses_environment,
    may_be_any,
    may_be_text,
    takes_words,
    takes_words_of_file,
)
from policies.frameworks.shell.tools import takes_any_word, writes_nothing
from policies.frameworks.shell.written_values import mark_of_written
from policies.frameworks.shell_declarations import ShellDeclarations

_STEPS_OF_CALL: Final = 6  # beside three for each two of its words
_STEPS_OF_WRAPPERS: Final = 20  # that may be functions, beside two for each word
_STEPS_OF_UNKNOWN: Final = 8  # that is no tool
_STEPS_OF_ALIAS: Final = 15  # where a program may be any, beside one for each word
_STEPS_OF_CHOICE: Final = 24  # in which its words may be another command
_UPPER_CASE = re.compile(r"[A-Z][A-Z0-9_]*")
_CALLBACK = re.compile(r"-t*C")  # of mapfile
_LEXED: Final = re.compile(r"[^\w\s./:=@%+,-]", re.ASCII)  # in an alias it may change what the words behind it are


class ShellCommands(ShellDeclarations):
    """Looks at one command after the other."""

    def _judge(self, call: Call) -> str:
        """
        Look at a command; returns a mark for what it writes.

        Raises:
            UnreadableError: If its words may be more commands than in any real text.
        """
        count = len(call.words.every())
        self._of_container.work(_STEPS_OF_CALL + count + count // 2)
        line = call.words.line
        at, takes_text = call.words.unwrapped
        if not takes_text and at < len(line) and len(call.words.places[at]) > 1:
            self._of_container.work(_STEPS_OF_CHOICE * len(call.words.places[at]))
            marks = without_implied(list({self._judge(one) for one in call.each(at)}))
            return marks[0] if len(marks) == 1 else self._computed
        if at:
            self._wrap(call, at, takes_text=takes_text)
        if at == len(line):
            self._unknown(call)
            return self._computed if line else ""
        if any(map(self._is_function, line[:at])):
            self._of_container.work(_STEPS_OF_WRAPPERS + 2 * len(line))
            self._unknown(call)
        started = call.behind(at)
        if not takes_text and self._is_tool(started.words):
            mark = self._use(started.words)
            if not call.may_begin_later:
                return mark
        if takes_words(line[:at]) and (self._is_in_text(call.words.every()) or takes_words_of_file(line[:at])):
            self._find("")
        if takes_text:
            self._hand_on(started)
            return self._computed
        # $(NAME) that the kubelet leaves alone, since nobody sets it yet: as good as $NAME.
        mark = self._start(started)
        is_reference = len(line) == 1 and _UPPER_CASE.fullmatch(line[0]) and not self._is_function(line[0])
        return A_VALUE if is_reference else mark

    def _hand_on(self, call: Call) -> None:
        """Look at a text that a wrapper hands to a shell."""
        for text in self._texts_for_shell(call.words):
            self._run(text)
        self._give_text(call)
        for one in call.words.every():
            self._may_be_option(one, is_unknown=True)

    def _start(self, call: Call) -> str:
        """Look at a program that is started and is no tool; returns a mark for what it writes."""
        program = call.words.line[0]
        is_function = self._is_function(program)
        mark = self._unknown(call) if is_function else ""
        if program in DECLARING:
            self._declare(program, call.named)
            self._declare_kind(call.words)
        elif program in ("eval", "trap"):
            self._run_words(call)
        elif program.rpartition("/")[2] not in SHELLS or not self._start_shell(call):
            return mark if is_function else self._unknown(call)
        return self._computed

    def _use(self, words: CommandWords) -> str:
        """Take note of what a tool keeps for later, variables and texts; returns a mark for what it writes."""
        line, uncertain = words.line, words.uncertain()
        self._set_by(line, uncertain)
        for one in chain(line[1:], uncertain):
            self._keep(one)
        fed = words.every()[1:] if self._feeds else []
        self._fed.update(dict.fromkeys(fed[:-1] if fed[-1:] == ["."] else fed))  # a shell's `.` has a file behind it
        if line[0] == "shift":
            self._values.shift()
        if writes_nothing(line):
            return ""
        return mark_of_written([*line, *uncertain]) or self._computed

    def _wrap(self, call: Call, at: int, *, takes_text: bool) -> None:
        """Take note of what wrappers give to a command, or take from it; one that is unread may be any program."""
        wrappers, started = call.words.up_to(at), call.words.behind(at)
        if any(one.startswith(ANYTHING) for one in wrappers.every()):
            self._find("")
        if has_odd_option(call.words.every() if takes_text else wrappers.every()):
            self._find("")
        # Elsewhere the shell that has them puts their values in.
        if (takes_text or any(map(may_be_text, started.every()))) and loses_environment(call.words.every()):
            self._values.lose_environment()
        words = set(wrappers.every())
        # IFS is what a shell sets at its start.
        self._name([one for one in call.named if one in words and not one.startswith("IFS=")])
        self._take(call, at, takes_text)

    def _is_in_text(self, words: list[str]) -> bool:
        return self._runs > 0 or (self._depth > 0 and self._index.names_framework(" ".join(words)))

    def _unknown(self, call: Call) -> str:
        """Look at a program that may be a framework, or a built-in command or function; returns what it writes."""
        if not call.words.places:
            return ""
        program, every = call.words.line[0], call.words.every()
        of_alias = _STEPS_OF_ALIAS + len(every) if "alias" in self._functions else 0
        self._of_container.work(_STEPS_OF_UNKNOWN + of_alias)
        self._set_by_unknown(call, starts_shell=self._start_shell_inside(call))
        if may_be_any(program):
            self._undefines = True
            self._may_be_built_in(every[1:])
        if program in ("alias", "hash"):
            self._functions.add("alias")
            self._values.lose()
            if any(self._index.in_text.search(one) or _LEXED.search(one) for one in every):
                self._find("")
        elif takes_any_word(program):
            self._reads_input = True  # and may run parts of it
        if takes_any_word(program) and any(ANYTHING in one or _CALLBACK.match(one) for one in every):
            self._find("")
        elif program in (".", "source") and any(map(is_input, every[1:])):
            self._reads_input |= not self._bodies
        self._take_in_texts(call.words.line)
        if not self._calls_own(call):
            self._take_behind(call)
        for one in () if self._calls_own(call) else dict.fromkeys(every):
            self._may_be_option(one, is_unknown=may_be_any(program))
        return self._computed

    def _set_by_unknown(self, call: Call, *, starts_shell: bool) -> None:
        """Take note of the variables, and the words given to functions and texts, that a program may set."""
        program, passed = call.words.line[0], call.passed.every()
        is_unread = may_be_any(program)
        is_any = is_unread or "alias" in self._functions
        self._reads_input |= is_unread and self._is_fed and UNREAD in program.rpartition("/")[2]
        if has_odd_option(call.words.every()):
            self._find("")
        if program in DECLARING:
            self._declare(program, call.named)
            self._declare_kind(call.words)
        elif is_any or program in self._functions or any(one.rpartition("/")[2] == "env" for one in passed):
            self._name(call.named)
        if is_any or program in ("compgen", "set", *self._functions):
            self._set_by(call.words.line, call.words.uncertain())
        if program == "set":
            for group in self._ways_of(call.passed):
                self._values.give(self._values.context, positional(group))
            self._tell_first(call.passed.behind(1))
        if is_any or not self._called_by(call).isdisjoint(call.words.every()[1:]):
            self._give_text(call)
        if program in self._functions:
            self._call_function(program, call)
        elif not (is_any or starts_shell) and call.passed.may_hand_text:
            self._give_text(call)
