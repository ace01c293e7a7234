"""
What a command line gets that cannot be read and may be a memory setting: of a container, its hooks, and their texts.

An unread word matters where it can be an option of a program that may be a framework: every program but those that are
known to be none, since wrappers and scripts cannot be listed.
"""

import re
from collections.abc import Sequence
from itertools import chain
from typing import Final

from policies.frameworks.command_line import POSIX_SHELLS, SHELLS, unwrapped
from policies.frameworks.expansion import A_VALUE, ANYTHING, TOLD, UNREAD, UnreadableError, Variables
from policies.frameworks.settings import SettingIndex
from policies.frameworks.shell_declarations import DECLARING, declared
from policies.frameworks.shell_lexer import Lexer
from policies.frameworks.shell_options import behind_options, is_input, takes_words
from policies.frameworks.shell_text import has_braces, has_escapes, in_plain_words, unread_options
from policies.frameworks.shell_tools import runs_another, takes_any_word, tool, variables_set, writes_a_value
from policies.frameworks.shell_values import DASHED, Word, names_of_numbers
from policies.frameworks.shell_variables import FUNCTION_OF_BASH, RUN_BY_SHELLS, ShellVariables

_PART_UNREAD = re.compile(r"-[\w-]*+(?=\0)")
_KNOWN_MARKS = re.compile(f"(?:{A_VALUE}|{TOLD})+")
_UNREADABLE: Final = "("
_COMPUTED = re.compile(r"[$`]")
_COMPUTED_NAME = re.compile(rf"[A-Za-z_]\w*+(?:{UNREAD}[\1-\6]?\w*+)+=", re.ASCII)
_UPPER_CASE = re.compile(r"[A-Z][A-Z0-9_]*")
_AGAIN: Final = ("for", "while", "until", "trap")  # what stands before is run once more, or later
_LOOKED_AT: Final = (UNREAD, "$", "`", "#", "{", "(", "~", "xargs", "fish", "csh", "zsh", "mapfile", "readarray")
_SPACE = re.compile(r"\s")


class UnreadWords(ShellVariables):
    """Looks at the command lines of one container."""

    def __init__(self, variables: Variables, index: SettingIndex) -> None:
        """Read them with *variables*, for the settings of *index*."""
        super().__init__(variables)
        self._index = index
        self.count = variables.count_token
        self._functions: set[str] = set()
        self._runs = 0  # how many texts are read that a shell runs for certain
        self._computed = ANYTHING  # what a command writes
        self._has_unread = self._reads_input = self._runs_kept = False
        self._kept: list[str] = []  # texts that a shell may run later, if one runs what it is given elsewhere
        self._seen: list[str] = []
        self._plain: dict[str, str] = {}
        self.start: str | None = None  # how an option begins that nobody can read: "" may be any

    def look_at(self, words: Sequence[str], *, is_command: bool) -> None:
        """Look at what a container or a hook is started with; without a command the image's own program gets it."""
        together = " ".join(words)  # a setting may be made in other ways than by NAME=value
        if not any(sign in together for sign in chain(_LOOKED_AT, self._index.variables)):
            return
        line = [Word(one) for one in words]
        if not is_command:
            self._may_be_framework([Word(""), *line])
        if is_command or not words[0].startswith("-"):
            self.begin(together)
            self.command(line)

    def look_at_variable(self, name: str, text: str) -> None:
        """Look at a variable of the container that shells run as a text."""
        if name.startswith(FUNCTION_OF_BASH):
            self._functions.add("alias")  # it may have the name of any tool
        if name.startswith(FUNCTION_OF_BASH) or name in RUN_BY_SHELLS:
            self.begin(text)
            self._run(text)

    def plain(self, text: str) -> str:
        """Return the words of a text, without what is a shell's alone."""
        known = self._plain.pop(text, None)  # it may take MiB
        return in_plain_words(text, self._of_container) if known is None else known

    def says(self, text: str) -> None:
        """Take note of a text that may become a word, or not."""
        self._seen.append(text)

    def assign(self, name: str, value: Word, *, appends: bool = False) -> None:
        """Take note of a variable."""
        self._seen.append(f"{name.rstrip('[')}={value.text}")
        super().assign(name, value, appends=appends)
        self._look_at_kept(value.text, is_run=name in RUN_BY_SHELLS)

    def defines(self, name: str) -> None:
        """Take note of a function: it may be called like a tool."""
        self._functions.add(name)

    def here(self, command: list[Word], body: str, *, is_computed: bool) -> None:
        """Look at what a command reads: a tool as data, a shell as a text, and others as they like."""
        self._seen.append(body)
        self._has_unread |= UNREAD in body
        program = command[0].text if command else ""
        if self._tool(program):
            self._look_at_kept(body)
        elif program.rpartition("/")[2] in (*SHELLS, ".", "source") and not is_computed:
            self._run(body)
        elif ANYTHING in body:
            self._find("")
        elif _COMPUTED.search(body):
            self._may_be_text(body)

    def command(self, words: list[Word]) -> str:
        """Look at a command; returns a mark for what it writes."""
        texts = [one.text for one in words]
        if self.depth:
            self._seen.append(" ".join(texts))
        self._has_unread |= any(ANYTHING in one for one in texts)
        at, takes_text = unwrapped(texts)
        if any(one.splits or one.text.startswith(ANYTHING) for one in words[:at]):
            self._find("")
        self.hand_on(words[:at])
        program = texts[at] if at < len(texts) else ""
        name = program.rpartition("/")[2]
        if takes_text:
            self._run(" ".join(texts[at:]).partition(" ")[2] if program.startswith("-") else program)
        elif self._tool(program) and not runs_another(texts[at:]):
            self._reads_into(texts[at:])
            return A_VALUE if writes_a_value(texts[at:]) else self._computed
        elif program in DECLARING and program not in self._functions:
            self._declare(words[at:])
        elif program in ("eval", "trap"):
            self._run(" ".join(texts[at + 1 :]) if program == "eval" else "".join(texts[at + 1 : at + 2]))
        elif name in SHELLS and not self._is_script(name, words[at + 1 :]):
            pass
        else:
            self._may_be_framework(words[at:] or words)
        if program and takes_words(texts[:at], in_text=bool(self._runs)):
            self._find("")
        # $(NAME) that the kubelet leaves alone, since nobody sets it yet: as good as $NAME.
        return A_VALUE if len(words) == 1 and _UPPER_CASE.fullmatch(program) else self._computed

    def _tool(self, program: str) -> str:
        return "" if program in self._functions or "alias" in self._functions else tool(program)

    def _find(self, start: str) -> None:
        if self.start is None and self._index.may_become_one(start):
            self.start = start

    def _may_be_framework(self, words: list[Word]) -> None:
        if words[0].text in ("alias", "hash"):
            self._functions.add("alias")
        elif takes_any_word(words[0].text) and any(ANYTHING in one.text or one.text.startswith("-C") for one in words):
            self._find("")
        for one in words:
            text = _KNOWN_MARKS.sub("", one.text, count=1) if one.text.startswith(UNREAD) else one.text
            if one.splits or text.startswith((ANYTHING, DASHED)) or _COMPUTED_NAME.match(text):
                self._find("")
            elif match := _PART_UNREAD.match(text):
                self._find(match[0])
            elif _SPACE.search(text) and (_COMPUTED.search(text) or ANYTHING in text or "{" in text):
                self._may_be_text(text)

    def _may_be_text(self, text: str) -> None:
        """Look at a word that its program may run."""
        is_read = ANYTHING not in text and _COMPUTED.search(text) and self._run(text, is_text=False)
        if not is_read:
            plain = self._plain[text] = self.plain(text)
            for start in unread_options(plain):
                self._find(start)

    def _is_script(self, name: str, words: list[Word]) -> bool:
        """Look at what a shell is started with; returns whether it is a script and its words."""
        at, has_text = behind_options([one.text for one in words])
        if at >= len(words):  # what an option at the end asks for is not there
            self._reads_input = True
            return False
        if not has_text:
            self._reads_input |= is_input(words[at].text)
            return True
        if words[at].splits:
            self._find("")
        self._run(words[at].text, reads=name in POSIX_SHELLS)
        self._may_be_framework([Word(""), *words[at + 1 :]])
        return False

    def _declare(self, words: list[Word]) -> None:
        try:
            for one in declared(words):
                self.assign(one.name, one.value, appends=one.appends)
        except UnreadableError:
            self._find("")

    def _reads_into(self, words: list[str]) -> None:
        """Take note of what a tool keeps for later: the variables that it sets, and texts."""
        for one in variables_set(words):
            self.compute(one.partition("[")[0])
            self._seen.append(f"{one}={ANYTHING}")
            if UNREAD in one:
                self._find("")
        for one in words[1:]:
            self._look_at_kept(one)
            for name in names_of_numbers(one) if words[0] == "let" else ():
                self.assign(name, Word(A_VALUE))

    def _look_at_kept(self, text: str, *, is_run: bool = False) -> None:
        """Look at a text that nobody runs yet; *is_run*: some shell will."""
        if is_run or (0 <= text.find("[") < max(text.rfind("$("), text.rfind("`"))):  # arithmetic evaluates it
            self._may_be_text(text)
        elif "{" in text or _COMPUTED.search(text):
            self._kept.append(text)

    def _unreadable(self, text: str, *, reads: bool) -> None:
        """Look at a text that a shell runs and that is not read: what may be computed there counts."""
        plain = self._plain[text] = in_plain_words(text, self._of_container, computed=ANYTHING)
        if self.start == "":
            return
        joined = text.replace("\\\n", "")  # dash joins names so, bash does not
        is_computed = ANYTHING in plain or (
            joined != text and ANYTHING in in_plain_words(joined, self._of_container, computed=ANYTHING)
        )
        if is_computed or has_braces(text) or (not reads and has_escapes(text)):
            self._find("")
        for start in unread_options(plain):
            self._find(start)

    def _run(self, text: str, *, is_text: bool = True, reads: bool = True) -> bool:
        """Read a text that a shell runs, or may run; returns whether it can be read, by what *reads* POSIX."""
        outer, depth, computed = self._seen, self.depth, self._computed
        self._runs += is_text
        self._runs_kept |= is_text and UNREAD in text
        if not is_text and not any(
            name in text for name in self._index.framework_names
        ):  # or it would be said of every text that has something in backquotes
            self._computed = A_VALUE
        self.depth += 1
        try:
            self._seen = []
            Lexer(text if reads else _UNREADABLE, self).read()
            if self._functions or any(word in text for word in _AGAIN):  # what is used may be set later
                Lexer(text, self).read()
            if is_text:
                self._plain[text] = in_plain_words(" ".join(self._seen), self._of_container)
        except UnreadableError:
            if is_text:
                self._unreadable(text, reads=reads)
            return False
        finally:
            outer += self._seen if depth else ()
            self._seen, self.depth, self._computed = outer, depth, computed
            self._runs -= is_text
        if self._reads_input and self._has_unread:
            self._find("")
        if self._reads_input or self._runs_kept:
            kept, self._kept = self._kept, []
            for one in kept:
                self._may_be_text(one)
        return True
