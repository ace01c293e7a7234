"""The texts of which a command line says that a shell runs them, or may, and what is kept for one to run later."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from policies.frameworks.allowance import UnreadableError
from policies.frameworks.expansion import A_VALUE, ANYTHING, Variables
from policies.frameworks.settings import SettingIndex
from policies.frameworks.shell.builtins import CHANGING
from policies.frameworks.shell.names import RUN_BY_SHELLS, names_command
from policies.frameworks.shell.options import is_input
from policies.frameworks.shell.plain_words import has_braces, has_escapes, in_plain_words, unread_options
from policies.frameworks.shell.reader import script_of
from policies.frameworks.shell.reading import Reading
from policies.frameworks.shell.rest import is_made_up
from policies.frameworks.shell.said import Heard, Said
from policies.frameworks.shell.script import EVERYWHERE, Script
from policies.frameworks.shell.signs import assigns_in_index, computes, may_refer
from policies.frameworks.shell.values import Values

_DEEPEST: Final = 12  # texts in one another
_STEPS_OF_LOOK: Final = 30  # at a text that may be run
_STEPS_OF_TEXT: Final = 70  # beside those of what is in it
_TEXT_SIGNS = re.compile(
    r"[$`;\n]|(?<![\w-])[A-Za-z_]\w*+(?:\[[^]]*\])?\+?=|^\.(?!\S)|\b(?:alias|eval|for|let|mapfile|printf|read|readarray|select|set|source|trap|unset)\b"
)
_REFERRED = re.compile(r"\$\{?(\w+|@)")
_ASSIGNS = re.compile(r"\b[A-Za-z_]\w*+=", re.ASCII)
_NOT_SEEN: Final = ("#", "<", ">", "case")  # what behind them is no word to a shell may be one to another program


class ShellTexts:
    """Reads the texts of one command line."""

    def __init__(self, variables: Variables, index: SettingIndex) -> None:
        """Read them with *variables*, for the settings of *index*."""
        self._of_container = variables
        self._index = index
        self._values = Values(variables, index.takes_next, self._substituted, self._changes)
        self._scripts: dict[tuple[str, bool], Script | None] = {}
        self._contexts: dict[str, int] = {}  # of texts that are given words
        self._heard = Heard()
        self._unread: set[str] = set()  # texts that no shell reads
        self._functions: set[str] = set()
        self._open_functions: set[str] = set()  # whose bodies end nobody knows where
        self._loose_functions: set[str] = set()  # of texts that may be run as programs, or in parts
        self._undefines = False  # one of them may be taken back
        self._plain: dict[str, str] = {}
        self._computed = ANYTHING  # what a command writes
        self._depth = 0
        self._open: list[str] = []  # texts that are being read
        self._is_fed = False  # something may read what others write
        self._is_bash = False  # no other shell reads the text
        self._known: tuple[int, ...] = ()  # of commands, before the first was looked at
        self.taking: dict[tuple[str, ...], None] = {}  # words that may take variables from a framework, each once
        self.lists: dict[tuple[str, str], None] = {}  # variables of several settings, and what they are set to
        self.start: str | None = None  # how an option begins that nobody can read: "" may be any
        self._again()

    def end(self) -> None:
        """Read nothing more: this and what puts values into words hold each other, and the texts that were read."""
        del self._values

    def _again(self) -> None:
        """Begin to read a command line, or to read it once more."""
        self._ran: set[tuple[str, bool, str]] = set()  # texts, whether a shell runs them for certain, and contexts
        self._sure: set[str] = set()  # those that a shell runs for certain
        self._kept: dict[str, None] = {}  # texts that a shell may run later, if one runs what it is given elsewhere
        self._said = Said()
        self._is_new = True  # no command of a text was looked at
        self._runs = 0  # how many texts are read that a shell runs for certain
        self._has_unread = self._reads_input = self._runs_kept = False
        self._bodies: list[str] = []  # here-documents of the command that is looked at
        self._feeds = False  # it writes for another
        self._downloads = False  # it reads a download, and nothing else
        self._fed: dict[str, None] = {}  # texts that are written for others
        self._is_of_tools = False  # the script that is looked at starts nothing else

    def plain(self, text: str) -> str:
        """Return the words of a text, without what is a shell's alone."""
        known = self._plain.pop(text, None)  # it may take MiB
        return in_plain_words(text, self._of_container) if known is None else known

    def _script(self, script: Script) -> str:
        """Look at the commands of a script; returns a mark for what they write."""
        raise NotImplementedError

    def _substituted(self, script: Script) -> str:
        """Look at the commands of a substitution; returns a mark for what they write."""
        raise NotImplementedError

    def _look_at_unread(self, plain: str) -> None:
        """Look at the plain words of a text that a shell runs and that is not read."""
        raise NotImplementedError

    def _changes(self, program: str) -> bool:
        """Whether a program is a shell's own, or the text's, and may set something in it."""
        return program in CHANGING or program in self._functions

    def _find(self, start: str) -> None:
        """Take note of a word that begins with *start* and goes on unread."""
        if self.start is None and self._index.may_become_one(start):
            self.start = start

    def _say(self, text: str, *, is_certain: bool = True) -> None:
        """Take note of words behind each other, or one of several that may be; raises UnreadableError for too many."""
        self._of_container.work(self._heard.steps(self._open[-1] if self._open else "", text))
        self._said.add(text, is_certain=is_certain)

    def _set_list(self, name: str, value: str) -> None:
        """Take note of what replaces the settings in a variable of several."""
        if name in self._index.lists:
            self.lists[name, value] = None

    def _hold(self, name: str, text: str, lists: Iterable[str] = ()) -> None:
        """Take note of what a variable may be set to; *lists*: what is known of that, where it is joined to others."""
        self._values.assign(name, text)
        for one in lists or (text,):
            self._set_list(name, one)
        if name in RUN_BY_SHELLS and is_input(text):
            self._find("")
        self._keep(text, is_run=names_command(name))

    def _keep(self, text: str, *, is_run: bool = False) -> None:
        """Look at a text that nobody runs yet; *is_run*: some shell will."""
        if is_run or (0 <= text.find("[") < max(text.rfind("$("), text.rfind("`"))):  # arithmetic evaluates it
            self._may_run(text)
        elif assigns_in_index(text):  # and so it does here
            self._values.lose()
        elif "{" in text or "=" in text or computes(text):
            self._kept[text] = None

    def _run_kept(self) -> None:
        """Look at what is kept, if a shell runs what is not written out."""
        if self._reads_input and (self._has_unread or any(map(_TEXT_SIGNS.search, self._fed))):
            self._find("")
        if self._reads_input or self._runs_kept:
            kept, self._kept = self._kept, {}
            for one in kept:
                self._may_run(one)

    def _may_run(self, text: str) -> None:
        """Look at a word that its program may run."""
        if text in self._sure or text in self._unread:
            return
        self._of_container.work(_STEPS_OF_LOOK)
        is_read = ANYTHING not in text and computes(text) and self._run(text, is_text=False)
        if not is_read and self._index.names_framework(text) and (_ASSIGNS.search(text) or self._values.may_give(text)):
            self._unreadable(text, reads=True)
        elif not is_read:
            self._unread.add(text)
            plain = self._plain[text] = self.plain(text)
            for start in unread_options(plain):
                self._find(start)

    def _run_here(self, text: str, context: str = "", *, is_bash: bool) -> None:
        """Read a text that is run by the shell which reads this one."""
        how = Reading(is_bash=is_bash, is_new=False)
        if not self._run(text, how=how, context=context or self._values.context):
            self._values.lose()
            self._functions.add("alias")

    def _run(self, text: str, *, is_text: bool = True, how: Reading | None = None, context: str = EVERYWHERE) -> bool:
        """Read a text that a shell runs, or may run, with the words of *context*; returns whether it can be read."""
        how = how or Reading()
        key, script = (text, how.is_bash), self._script_of(text, how)
        if (text, is_text, context) in self._ran:
            if is_text and text in self._open:  # it runs itself, with what it has set
                self._values.lose()
            return script is not None
        self._ran.add((text, is_text, context))
        self._sure |= {text} if is_text else set()
        if is_text and self._depth and is_made_up(text):
            self._find("")
        self._runs_kept |= is_text and may_refer(text)
        if self._values.may_be_shortened(text):
            self._values.lose()
        is_told = script is not None and all(command.is_written for command in script.commands)
        with self._inside(text, how, context, is_text=is_text):
            if not is_text and is_told and not self._index.names_framework(text):
                self._computed = A_VALUE  # or it would be said of every text with backquotes
            try:
                self._look_through(text, script, is_text=is_text)
            except UnreadableError:
                self._scripts[key] = None
                if is_text:
                    self._unreadable(text, reads=how.reads)
                return False
        return True

    @contextmanager
    def _inside(self, text: str, how: Reading, context: str, *, is_text: bool) -> Iterator[None]:
        """Be in the shell that reads a text; what it saw is said to the one around it, and nothing else is left."""
        said, certain, computed, outer = self._said, self._values.certain, self._computed, self._values.context
        was_bash, self._is_bash = self._is_bash, how.is_bash
        of_tools, self._is_of_tools = self._is_of_tools, False
        settled, self._values.settles = self._values.settles, how.is_new
        self._said, self._values.certain, self._values.context = Said(), set(), context
        self._open.append(text)
        self._depth += 1
        self._runs += is_text
        try:
            yield
        finally:
            self._is_bash, self._values.settles, self._is_of_tools = was_bash, settled, of_tools
            self._depth -= 1
            self._open.pop()
            self._runs -= is_text
            if self._depth:
                said.update(self._said)
            self._said, self._values.certain, self._computed, self._values.context = said, certain, computed, outer

    def _look_through(self, text: str, script: Script | None, *, is_text: bool) -> None:
        if script is None:
            raise UnreadableError
        self._of_container.work(_STEPS_OF_TEXT)
        self._script(script)
        plain = in_plain_words(self._said.text(), self._of_container)
        is_all_seen = is_text or not any(one in text for one in _NOT_SEEN)
        self._plain[text] = plain if is_all_seen else f"{self.plain(text)} {plain}"

    def _script_of(self, text: str, how: Reading) -> Script | None:
        """Return the commands of a text; None if it cannot be read."""
        key = text, how.is_bash
        if key not in self._scripts:
            self._scripts[key] = None
            if how.reads and self._depth < _DEEPEST:
                with suppress(UnreadableError):
                    self._scripts[key] = script_of(text, self._of_container.work, is_bash=how.is_bash)
        return self._scripts[key]

    def _unreadable(self, text: str, *, reads: bool) -> None:
        """Look at a text that a shell runs and that is not read: what may be computed there counts."""
        plain = self._plain[text] = in_plain_words(text, self._of_container, computed=ANYTHING)
        if self.start == "":
            return
        if self._depth > 1:  # the text around it leaves out what a shell reads
            self._say(plain)
        self._look_at_unread(plain)
        joined = text.replace("\\\n", "")  # dash joins names so, bash does not
        is_computed = ANYTHING in plain or self._values.sets_any(_REFERRED.findall(text))
        if not is_computed and joined != text:
            is_computed = ANYTHING in in_plain_words(joined, self._of_container, computed=ANYTHING)
        is_computed |= "IFS" in text and "$" in text  # values are split where nobody reads
        if is_computed or has_braces(text) or (not reads and has_escapes(text)):
            self._find("")
        for start in unread_options(plain):
            self._find(start)
