"""
What a command line gets that cannot be read and may be a memory setting: of a container, its hooks, and their texts.

An unread word matters where it can be an option of a program that may be a framework: every program but those that are
known to be none, since wrappers and scripts cannot be listed.
"""

import re
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Final

from policies.frameworks.command_line import POSIX_SHELLS, SHELLS, unwrapped
from policies.frameworks.expansion import A_VALUE, ANYTHING, TOLD, UNREAD, UnreadableError, Variables
from policies.frameworks.settings import SettingIndex
from policies.frameworks.shell.builtins import COMPUTED, BuiltIns
from policies.frameworks.shell.options import behind_options, is_input, takes_words, takes_words_of_file
from policies.frameworks.shell.plain_words import BETWEEN, has_braces, has_escapes, in_plain_words, unread_options
from policies.frameworks.shell.reader import Lexer
from policies.frameworks.shell.script import DASHED, GIVEN, Word
from policies.frameworks.shell.tools import runs_another, takes_any_word, writes_a_value, writes_nothing
from policies.frameworks.shell.variables import FUNCTION_OF_BASH, RUN_BY_SHELLS
from policies.frameworks.shell_declarations import DECLARING

_PART_UNREAD = re.compile(r"-[\w-]*+(?=\0)")
_KNOWN_MARKS = re.compile(f"(?:{A_VALUE}|{TOLD})+")
_UNREADABLE: Final = "("
_COMPUTED_NAME = re.compile(rf"(?=[^=]*{UNREAD})(?:[A-Za-z_]|{UNREAD})(?:\w|{UNREAD}|[\1-\6])*+=", re.ASCII)
_ASSIGNS = re.compile(r"\b[A-Za-z_]\w*+=", re.ASCII)
_FRACTION = re.compile(r"0*+\.[0-9]++|1(?:\.0*+)?")
_UPPER_CASE = re.compile(r"[A-Z][A-Z0-9_]*")
_AGAIN: Final = ("for", "while", "until", "trap")  # what stands before is run once more, or later
_LOOKED_AT: Final = (UNREAD, *"$`#{(~", "alias", "xargs", "fish", "csh", "zsh", "mapfile", "readarray")
_NOT_SEEN: Final = ("#", "<", ">", "case")  # what behind them is no word to a shell may be one to another program
_SPACE = re.compile(r"\s")


class UnreadWords(BuiltIns):
    """Looks at the command lines of one container."""

    def __init__(self, variables: Variables, index: SettingIndex) -> None:
        """Read them with *variables*, for the settings of *index*."""
        super().__init__(variables)
        self._index = index
        self.count = variables.count_token
        self._runs = 0  # how many texts are read that a shell runs for certain
        self._computed = ANYTHING  # what a command writes
        self._has_unread = self._reads_input = self._runs_kept = False
        self._gives_option = False  # as a word that another command may get, with another value behind it
        self._plain: dict[str, str] = {}
        self.start: str | None = None  # how an option begins that nobody can read: "" may be any

    def look_at(self, words: Sequence[str], *, is_command: bool) -> None:
        """Look at what a container or a hook is started with; without a command the image's own program gets it."""
        together = " ".join(words)  # a setting may be made in other ways than by NAME=value
        if not any(sign in together for sign in chain(_LOOKED_AT, self._index.variables)):
            return
        line = [Word(one) for one in words]
        if not is_command:
            self.begin(together)
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

    def here(self, command: list[Word], body: str, *, is_computed: bool) -> None:
        """Look at what a command reads: a tool as data, a shell as a text, and others as they like."""
        self._seen.append(f"{BETWEEN} {body}")
        self._has_unread |= UNREAD in body
        program = command[0].text if command else ""
        if self._tool(program):
            self._look_at_kept(body)
        elif program.rpartition("/")[2] in (*SHELLS, ".", "source") and not is_computed:
            self._run_here(body)
        elif ANYTHING in body or (program in (".", "source") and UNREAD in body):
            self._find("")
        elif COMPUTED.search(body):
            self._may_be_text(body)

    def command(self, words: list[Word]) -> str:
        """Look at a command; returns a mark for what it writes."""
        texts = [one.text for one in words]
        together = " ".join(texts)
        if self.depth:
            self._seen.append(f"{BETWEEN} {together}")
        self._has_unread |= ANYTHING in together
        self._gives_option |= texts[0] in ("set", *self._functions) and self._has_option(texts)
        at, takes_text = unwrapped(texts)
        if at:
            self.hand_on(words[:at])
        program = texts[at] if at < len(texts) else ""
        name = program.rpartition("/")[2]
        if takes_text:
            self._run(" ".join(texts[at:]).partition(" ")[2] if program.startswith("-") else program)
        elif self._tool(program) and not runs_another(texts[at:]):
            self._reads_into(texts[at:])
            if writes_nothing(texts[at:]):
                return ""
            return A_VALUE if writes_a_value(texts[at:]) else self._computed
        elif program in DECLARING and program not in self._functions:
            self._declare(words[at:], words[:at])
        elif program in ("eval", "trap"):
            operands = [one for one in texts[at + 1 :] if one != "--"]
            self._run_here(" ".join(operands if program == "eval" else operands[:1]))
        elif name in SHELLS and not self._is_script(name, words[at + 1 :]):
            pass
        else:
            self._may_be_framework(words[at:] or words)
            self._may_set(words[at:])
        is_fed = at > 0 and takes_words(texts[:at])
        if program and is_fed and (self._is_in_text(texts[at:]) or takes_words_of_file(texts[:at])):
            self._find("")
        # $(NAME) that the kubelet leaves alone, since nobody sets it yet: as good as $NAME.
        return A_VALUE if len(words) == 1 and _UPPER_CASE.fullmatch(program) else self._computed

    def hand_on(self, wrappers: Sequence[Word]) -> None:
        """Take note of what wrappers give to a command; one that is unread may be any program."""
        if any(one.splits or one.text.startswith(ANYTHING) for one in wrappers):
            self._find("")
        super().hand_on(wrappers)

    def _is_in_text(self, words: list[str]) -> bool:
        return bool(self._runs) or (self.depth > 0 and self._names_framework(" ".join(words)))

    def _find(self, start: str) -> None:
        if self.start is None and self._index.may_become_one(start):
            self.start = start

    def _may_be_framework(self, words: list[Word]) -> None:
        if words[0].text in ("alias", "hash"):
            self._functions.add("alias")
            if any(self._index.in_text.search(one.text) for one in words):
                self._find("")
        elif takes_any_word(words[0].text) and any(ANYTHING in one.text or one.text.startswith("-C") for one in words):
            self._find("")
        if self._gives_option and any(
            one.text == GIVEN and _FRACTION.fullmatch(following.text) for one, following in pairwise(words)
        ):
            self._find("")
        for one in words:
            text = _KNOWN_MARKS.sub("", one.text, count=1) if one.text.startswith(UNREAD) else one.text
            if one.splits or text.startswith((ANYTHING, DASHED)) or _COMPUTED_NAME.match(one.text):
                self._find("")
            elif match := _PART_UNREAD.match(text):
                self._find(match[0])
            elif _SPACE.search(text) and (COMPUTED.search(text) or ANYTHING in text or "{" in text):
                self._may_be_text(text)

    def _names_framework(self, text: str) -> bool:
        return any(map(text.__contains__, self._index.framework_names))

    def _may_be_text(self, text: str) -> None:
        """Look at a word that its program may run."""
        is_read = ANYTHING not in text and COMPUTED.search(text) and self._run(text, is_text=False)
        if not is_read and self._names_framework(text) and _ASSIGNS.search(text):
            self._unreadable(text, reads=True)
        elif not is_read:
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
        self._gives_option |= self._has_option([one.text for one in words[at + 1 :]])
        self._run(words[at].text, reads=name in POSIX_SHELLS)
        self._may_be_framework([Word(""), *words[at + 1 :]])
        return False

    def _has_option(self, words: list[str]) -> bool:
        """Whether one of the words is a setting whose value is another word."""
        return any(one.startswith("-") and self._index.of_option(one) for one in words)

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

    def _run_here(self, text: str) -> None:
        """Read a text that is run by the shell which reads this one."""
        if not self._run(text):
            self.lose()
            self._functions.add("alias")

    def _run(self, text: str, *, is_text: bool = True, reads: bool = True) -> bool:
        """Read a text that a shell runs, or may run; returns whether it can be read, by what *reads* POSIX."""
        outer, depth, computed = self._seen, self.depth, self._computed
        if self.hides_signs and UNREAD in text:
            self._find("")
        self._runs += is_text
        self._runs_kept |= is_text and UNREAD in text
        if not is_text and not self._names_framework(text):  # or it would be said of every text with backquotes
            self._computed = A_VALUE
        self.depth += 1
        try:
            self._seen = []
            Lexer(text if reads else _UNREADABLE, self).read()
            if self._functions or any(word in text for word in _AGAIN):  # what is used may be set later
                Lexer(text, self).read()
            plain = in_plain_words(" ".join(self._seen), self._of_container)
            is_all_seen = is_text or not any(one in text for one in _NOT_SEEN)
            self._plain[text] = plain if is_all_seen else f"{self.plain(text)} {plain}"
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
