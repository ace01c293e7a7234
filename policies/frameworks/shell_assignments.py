"""What a command sets, and what it gets: values are put into its assignments and its words."""

from collections.abc import Iterator
from itertools import chain
from typing import Final

import msgspec

from policies.frameworks.expansion import ANYTHING, UNREAD
from policies.frameworks.lists_in_texts import begins_an_item
from policies.frameworks.own_variables import packed
from policies.frameworks.shell.builtins import DECLARING, written
from policies.frameworks.shell.command_words import Call, CommandWords, Ways
from policies.frameworks.shell.rest import HELD, REST, behind_held, is_one_word
from policies.frameworks.shell.script import ALL, Assignment, Command, Elements, Literal, Reference, Word
from policies.frameworks.shell_commands import ShellCommands

_STEPS_OF_KNOWN: Final = 8  # for each list that a variable becomes
_READ: Final = (Literal("read", is_quoted=False),)


class ShellAssignments(ShellCommands):
    """Looks at what single commands set."""

    def _sets_of(self, command: Command) -> tuple[set[str], set[str]]:
        """Take note of what a command sets; returns the names, and those of them that may keep what they hold."""
        reads = command.words[:1] == [_READ] and not self._is_function("read")
        sets = [one for one in command.sets if one.name != "IFS" or not (reads or self._is_of_tools)]
        is_tool = bool(command.words and self._tool(command.program))  # which takes such words as others
        kept = {one.name for one in sets if self._set(one, is_certain=command.is_certain, is_tool=is_tool)}
        kept |= {one.name for one in command.arrays if self._set_elements(one)}
        return {*(one.name for one in sets), *(one.name for one in command.arrays)}, kept

    def _call(self, command: Command) -> Call:
        """Put values into the words of a command."""
        sets = command.sets and not self._index.lists.keys().isdisjoint([one.name for one in command.sets])
        words_of_it = [self._joining(word, command) for word in command.words] if sets else command.words
        ways = [self._values.words(word) for word in words_of_it]
        named: list[str] = []
        for word, some in zip(words_of_it, ways, strict=True):
            is_written = written(word) is not None  # so that the text itself says what is set
            for way in some:
                if not (is_written and all(one.startswith(ANYTHING) for one in way[1:])):
                    named += way
        words = CommandWords.of(ways)
        passed = CommandWords.of(self._values.passed(words_of_it)) if command.passes else words
        return Call(words, named, passed, command.is_call, self._may_begin_later(command))

    def _joining(self, word: Word, command: Command) -> Word:
        """Write a word `NAME=$NAME,other:1` with a mark for what its variable holds already, if that is one word."""
        one = written(word)
        if one is None or (value := self._held_and_more(one)) is None:
            return word
        splits = not (self._is_bash and command.program in DECLARING and not self._is_function(command.program))
        is_quoted = next(part.is_quoted for part in word if isinstance(part, Reference))
        if splits and not is_quoted and not all(map(is_one_word, self._values.of(one.name))):
            return word
        return (Literal(f"{one.name}={HELD}"), *value[1:])

    def _held_and_more(self, one: Assignment) -> Word | None:
        """Return a value that begins with what its own variable of several settings holds, with a mark for that."""
        if one.name not in self._index.lists or one.appends or one.is_each:
            return None
        behind = behind_held(one, is_filled=self._values.is_filled(one.name))
        return None if behind is None else (Literal(HELD), *behind)

    def _set(self, one: Assignment, *, is_certain: bool, is_tool: bool) -> bool:
        """Take note of what a variable may be set to; returns whether what it holds already may be in it."""
        if not self._values.is_first(one.name, is_certain=is_certain) and (value := self._held_and_more(one)):
            one = msgspec.structs.replace(one, value=value)

        def make() -> list[str]:
            if one.is_each:
                return list(chain.from_iterable(self._values.words(one.value)))
            return self._values.texts(one.value)

        texts = self._values.setting(one.name, make, is_certain=is_certain, is_outermost=self._depth == 1)
        for text in texts:
            self._set_to(one, text, is_certain=len(texts) == 1 and not is_tool)
        return any(REST in text or HELD in text for text in texts)

    def _set_to(self, one: Assignment, text: str, *, is_certain: bool) -> None:
        """Take note of one value of a variable."""
        if text in (REST, HELD) and one.name in self._index.variables and self._values.is_emptied(one.name):
            self._set_to(one, "", is_certain=False)
        if text.startswith(HELD) and not self._is_of_its_own(one.name, text.removeprefix(HELD)):
            text = text.replace(HELD, ANYTHING, 1)
        self._say(f"{one.name}{'+' if one.appends else ''}={text}", is_certain=is_certain)
        text = f"{REST}{text}" if one.appends else text.replace(HELD, REST)
        self._hold(one.name, text, list(self._as_known(one.name, text)))

    def _is_of_its_own(self, name: str, more: str) -> bool:
        """Whether what is joined to a variable of several settings goes on none of those that it holds."""
        sign, _ = self._index.lists[name]
        return not packed(more) or begins_an_item(more, sign, 0, len(more))

    def _as_known(self, name: str, text: str) -> Iterator[str]:
        """Yield what a variable of several settings becomes by *text* with what is known of what it holds already."""
        if REST in text and text != REST and name in self._index.lists:
            self._values.own([name])
            known = [one for one in self._values.of(name) if UNREAD not in one]
            self._of_container.work(_STEPS_OF_KNOWN * len(known))
            yield from (text.replace(REST, one) for one in known)

    def _set_elements(self, array: Elements) -> bool:
        """Take note of the words of an array; returns whether those that it has already may stay."""
        name = f"{array.name}{ALL}"
        is_setting = array.name in self._index.variables
        if is_setting:
            self.taking["an array", array.name] = None
        if array.has_index:
            self._values.tear(name)
        ways: list[Ways] = []

        def make() -> list[str]:
            ways.extend(map(self._values.words, array.words))
            return []

        self._values.setting(name, make)
        words = CommandWords.of(ways)
        for text, is_certain in words.together(self._index.takes_next, loses_first=self._values.loses_first):
            self._say(text, is_certain=is_certain)
        groups = words.groups()
        if not groups:
            self._values.mix(name)
        for group in groups or [words.every()]:
            self._values.give(name, group)
        self._append(name, () if array.is_all else words.every())
        for one in words.every():
            self._keep(one)
            if is_setting:  # `NAME+=,other:1 program` hands the first one on
                self._say(f"{array.name}={one}", is_certain=False)
        return not array.is_all or any(REST in one for one in words.every())
