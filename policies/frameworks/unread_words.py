"""
What a command line gets that cannot be read and may be a memory setting: of a container, its hooks, and their texts.

An unread word matters where it can be an option of a program that may be a framework: every program but those that are
known to be none, since wrappers and scripts cannot be listed.
"""

import re
from collections.abc import Sequence
from typing import Final

from policies.frameworks.command_line import POSIX_SHELLS, SHELLS, unwrapped
from policies.frameworks.expansion import A_VALUE, ANYTHING, TOLD, UNREAD, UnreadableError, Variables
from policies.frameworks.settings import SettingIndex
from policies.frameworks.shell_expansions import DASHED, GIVEN, Word
from policies.frameworks.shell_lexer import Lexer
from policies.frameworks.shell_text import OF_EVERY_SHELL, in_plain_words, unread_options
from policies.frameworks.shell_tools import tool, variables_set, writes_a_value

_LONGEST_VALUE: Final = 4096  # characters of a variable that a text sets
_MOST_MADE: Final = 64 * 1024  # characters that variables make in one text
_PART_UNREAD = re.compile(r"-[\w-]*+(?=\0)")
_KNOWN_MARKS = re.compile(f"(?:{A_VALUE}|{TOLD})+")
_SPLITS_NO_NAMES = frozenset(" \t\n,:;|/=")  # which those that cannot begin an option have not before a dash
_UNREADABLE: Final = "("
_LONG_WITH_WORD = frozenset({"--rcfile", "--init-file"})
_OPERAND = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.ASCII | re.DOTALL)
_DECLARES = frozenset({"export", "readonly", "local", "declare", "typeset"})
_COMPUTED = re.compile(r"[$`]")
_UPPER_CASE = re.compile(r"[A-Z][A-Z0-9_]*")
_LOOPS: Final = ("for", "while", "until")
_LOOKED_AT: Final = (UNREAD, "$", "`", "#", "{", "(", "xargs")
_SPACE = re.compile(r"\s")


class UnreadWords:
    """Looks at the command lines of one container."""

    def __init__(self, variables: Variables, index: SettingIndex) -> None:
        """Read them with *variables*, for the settings of *index*."""
        self._variables = variables
        self._index = index
        self.count = variables.count_token
        self._values: dict[str, str] = {}
        self._functions: set[str] = set()
        self._made = 0
        self.depth = 0
        self._runs = 0  # how many texts are read that a shell runs for certain
        self._computed = ANYTHING  # what a command writes
        self._has_unread = self._reads_input = False
        self._seen: list[str] = []
        self._plain: dict[str, str] = {}
        self.start: str | None = None  # how an option begins that nobody can read: "" may be any

    def look_at(self, words: Sequence[str], *, is_command: bool) -> None:
        """Look at what a container or a hook is started with; without a command the image's own program gets it."""
        if not any(sign in one for one in words for sign in _LOOKED_AT):
            return
        line = [Word(one) for one in words]
        if not is_command:
            self._may_be_framework([Word(""), *line])
        if is_command or not words[0].startswith("-"):
            self._values.clear()
            self.command(line)

    def plain(self, text: str) -> str:
        """Return the words of a text, without what is a shell's alone."""
        known = self._plain.pop(text, None)  # it may take MiB
        return in_plain_words(text, self._variables) if known is None else known

    def _computed_in(self, text: str) -> str:
        return in_plain_words(text, self._variables, computed=ANYTHING)

    # What a lexer tells.

    def says(self, text: str) -> None:
        """Take note of a text that may become a word, or not."""
        self._seen.append(text)

    def value(self, name: str) -> str:
        """Return what a shell makes of $NAME."""
        value = " " if name == "IFS" else self._values.get(name)
        if value is None:
            value = self._variables.of(name)
        if value is None or (value == ANYTHING and name in OF_EVERY_SHELL):
            return A_VALUE
        self._made += len(value)
        if self._made > _MOST_MADE:
            raise UnreadableError
        return value

    def assign(self, name: str, value: Word, *, appends: bool = False) -> None:
        """Take note of a variable; one that is set to several values is the same as a word that stands elsewhere."""
        array = name.endswith("[")
        text = value.text
        self._seen.append(f"{name.rstrip('[')}={text}")
        if name == "IFS" and not _SPLITS_NO_NAMES.issuperset(text):
            raise UnreadableError
        before = self._values.get(name)
        if appends:
            text = (before if before is not None else self.value(name)) + text
        if len(text) > _LONGEST_VALUE:
            raise UnreadableError
        if array or (before is not None and before not in text):
            unread = ANYTHING in text or value.splits or ANYTHING in (before or "")
            text = ANYTHING if unread else GIVEN
        self._values[name] = text
        if array:
            self._values[name.rstrip("[")] = text

    def defines(self, name: str) -> None:
        """Take note of a function: it may be called like a tool."""
        self._functions.add(name)

    def here(self, command: list[Word], body: str, *, is_computed: bool) -> None:
        """Look at what a command reads: a tool as data, a shell as a text, and others as they like."""
        self._seen.append(body)
        self._has_unread |= UNREAD in body
        program = command[0].text if command else ""
        if self._tool(program):
            return
        if program.rpartition("/")[2] in (*SHELLS, ".", "source") and not is_computed:
            self._run(body)
        elif ANYTHING in body:
            self._find("")

    def command(self, words: list[Word]) -> str:
        """Look at a command; returns a mark for what it writes."""
        texts = [one.text for one in words]
        if self.depth:
            self._seen.append(" ".join(texts))
        self._has_unread |= any(ANYTHING in one for one in texts)
        at, takes_text = unwrapped(texts)
        if any(one.splits or one.text.startswith(ANYTHING) for one in words[:at]):
            self._find("")
        program = texts[at] if at < len(texts) else ""
        name = program.rpartition("/")[2]
        if takes_text:
            self._run(" ".join(texts[at:]).partition(" ")[2] if program.startswith("-") else program)
        elif self._tool(program):
            self._reads_into(texts[at:])
            return A_VALUE if writes_a_value(texts[at:]) else self._computed
        elif program in _DECLARES:
            self._declare(words[at + 1 :])
        elif program in ("eval", "trap"):
            self._run(" ".join(texts[at + 1 :]) if program == "eval" else "".join(texts[at + 1 : at + 2]))
        elif name in SHELLS and not self._is_script(name, words[at + 1 :]):
            pass
        else:
            self._may_be_framework(words[at:] or words)
        if any(one.rpartition("/")[2] == "xargs" for one in texts[:at]) and self._runs and program:
            self._find("")
        # $(NAME) that the kubelet leaves alone, since nobody sets it yet: as good as $NAME.
        return A_VALUE if len(words) == 1 and _UPPER_CASE.fullmatch(program) else self._computed

    # What a command does with its words.

    def _tool(self, program: str) -> str:
        return "" if program in self._functions or "alias" in self._functions else tool(program)

    def _find(self, start: str) -> None:
        if self.start is None and self._index.may_become_one(start):
            self.start = start

    def _may_be_framework(self, words: list[Word]) -> None:
        if words[0].text == "alias":
            self._functions.add("alias")
        for one in words:
            text = _KNOWN_MARKS.sub("", one.text, count=1) if one.text.startswith(UNREAD) else one.text
            if one.splits or text.startswith((ANYTHING, DASHED)):
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
        at, has_text = 0, False
        while at < len(words) and words[at].text.startswith(("-", "+")) and words[at].text != "--":
            option = words[at].text
            is_long = option.startswith("--")
            has_text |= not is_long and "c" in option
            at += 2 if option in _LONG_WITH_WORD or (not is_long and option[-1] in "oO") else 1
        if at >= len(words):  # what an option at the end asks for is not there
            self._reads_input = True
            return False
        if not has_text:
            return True
        if words[at].splits:
            self._find("")
        self._run(words[at].text, reads=name in POSIX_SHELLS)
        self._may_be_framework([Word(""), *words[at + 1 :]])
        return False

    def _declare(self, words: list[Word]) -> None:
        for one in words:
            match = _OPERAND.match(one.text)
            if match:
                self.assign(match[1], Word(match[3]), appends=bool(match[2]))
            elif UNREAD in one.text or (one.text.startswith("-") and "n" in one.text):
                self._find("")

    def _reads_into(self, words: list[str]) -> None:
        """Take note of the variables that a tool sets."""
        for one in variables_set(words):
            self._values[one] = ANYTHING
            if UNREAD in one:
                self._find("")

    def _run(self, text: str, *, is_text: bool = True, reads: bool = True) -> bool:
        """Read a text that a shell runs, or may run; returns whether it can be read, by what *reads* POSIX."""
        outer = self._seen, self.depth, self._computed
        self._runs += is_text
        if not is_text and not any(
            name in text for name in self._index.framework_names
        ):  # or it would be said of every text that has something in backquotes
            self._computed = A_VALUE
        self.depth += 1
        try:
            self._seen = []
            Lexer(text if reads else _UNREADABLE, self).read()
            if self._functions or any(loop in text for loop in _LOOPS):  # what is used may be set later
                self._seen = []
                Lexer(text, self).read()
            if is_text:
                self._plain[text] = in_plain_words(" ".join(self._seen), self._variables)
        except UnreadableError:
            if is_text:
                self._plain[text] = self._computed_in(text)
                joined = text.replace("\\\n", "")  # dash joins names so, bash does not
                if not reads and "(" in text:  # fish's substitution
                    self._find("")
                if ANYTHING in self._plain[text] or (joined != text and ANYTHING in self._computed_in(joined)):
                    self._find("")
            return False
        finally:
            self._seen, self.depth, self._computed = outer
            self._runs -= is_text
        if self._has_unread and self._reads_input:
            self._find("")
        return True
