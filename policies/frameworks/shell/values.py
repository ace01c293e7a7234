"""What a word of a shell's text may become: each way in which variables, commands and splitting make words of it."""

from collections.abc import Callable, Iterator
from itertools import chain, product
from typing import Final

from policies.frameworks.allowance import CHARACTERS_OF_STEP, UnreadableError
from policies.frameworks.expansion import A_NUMBER, ANYTHING, UNREAD, Variables, without_implied
from policies.frameworks.shell.builtins import CHANGING
from policies.frameworks.shell.patterns import part_of
from policies.frameworks.shell.rest import REST, without_joined_rest
from policies.frameworks.shell.script import ALL, POSITIONAL, Literal, Number, Output, Part, Reference, Script, Word
from policies.frameworks.shell.several import MOST_VALUES, one_of
from policies.frameworks.shell.shortened import Shortened, means_the_same, stands_apart
from policies.frameworks.shell.split_parts import MOST_PIECES, QUOTED, SPLIT, has_quotes, key_of, written_part
from policies.frameworks.shell.variables import ShellVariables

_STEPS_OF_WORD: Final = 4  # that has to be put together, beside those of its ways
_STEPS_OF_WAY: Final = 2  # beside those of its characters
_STEPS_OF_PIECE: Final = 2  # of several into which a way is split
_FEW_WAYS: Final = 3  # of a word: what a variable holds, and its default
_STEPS_OF_MANY: Final = 8  # for each way beside those, which comes to be said, judged and split


class Values(ShellVariables):
    """Puts values into words."""

    def __init__(
        self,
        variables: Variables,
        opens: Callable[[str], bool],
        runs: Callable[[Script], str],
        changes: Callable[[str], bool],
    ) -> None:
        """
        Begin with the *variables* of the container.

        *runs* says what a script writes, and *changes* whether a program is a shell's own and sets something in it.
        """
        self._runs, self._changes = runs, changes
        super().__init__(variables, opens)

    def begin(self) -> None:
        """Forget what a command line has set."""
        super().begin()
        self._shortened = Shortened()

    def again(self) -> None:
        """Begin to read it once more, with what it has set."""
        super().again()
        self.made: list[tuple[str, str]] = []  # variables that words have set, and their values
        self._outputs: dict[tuple[int, str], str] = {}

    def words(self, word: Word) -> list[tuple[str, ...]]:
        """
        Return what a word may become: for each way, the words.

        Raises:
            UnreadableError: If variables make more than in any real text.
        """
        if len(word) == 1 and isinstance(word[0], Literal) and word[0].text and ANYTHING not in word[0].text:
            return [(word[0].text,)]
        literals = [one for one in word if isinstance(one, Literal)]
        text = "".join([one.text for one in literals])
        if len(literals) == len(word) and ANYTHING not in text:
            self._of_container.work(len(word))
            return [(text,) if text or any(one.is_quoted for one in literals) else ()]
        found = {}
        for one in self._joined(word, splits=True):
            if one.count(SPLIT) > MOST_PIECES:
                raise UnreadableError
            written = [piece for piece in one.split(SPLIT) if piece]
            pieces = [piece.replace(QUOTED, "") for piece in written]
            self._of_container.work(_STEPS_OF_PIECE * len(pieces))
            found[tuple(map(without_joined_rest, pieces))] = True
            if any(piece != REST and pieces[place] == REST for place, piece in enumerate(written)):
                # It is quoted: a word all the same, of which nothing may be left.
                found[tuple("" if piece == REST else without_joined_rest(piece) for piece in pieces)] = True
            if any(map(has_quotes, word)) or (len(pieces) > 1 and not self.is_known("IFS")):  # it may not be split
                found[(without_joined_rest(" ".join(pieces)),)] = True
        return list(found)

    def passed(self, words: list[Word]) -> list[list[tuple[str, ...]]]:
        """Return what words may become, without those that their own text or function was given."""
        passed: list[list[tuple[str, ...]]] = []

        def make() -> list[str]:
            passed.extend(map(self.words, words))
            return []

        self.setting(POSITIONAL, make)
        return passed

    def texts(self, word: Word) -> list[str]:
        """Return what a word may become where it is not split, as behind `NAME=`."""
        return [one.replace(SPLIT, " ").replace(QUOTED, "") for one in self._joined(word, splits=False)]

    def _joined(self, word: Word, *, splits: bool) -> list[str]:
        """Put the values of the parts together; a variable has the same one wherever it stands in the word."""
        self._of_container.work(_STEPS_OF_WORD + len(word))
        if len(word) == 1:
            return self._alone(word[0], splits=splits)
        keys = [key_of(part, place) for place, part in enumerate(word)]
        values = {key: self._of_part(key[0], is_alone=False, splits=splits) for key in keys}
        for place, (key, part) in enumerate(zip(keys, word, strict=True)):
            if isinstance(part, Reference) and not stands_apart(word, place, self._opens):
                values[key] = self._shortened.with_later(values[key])
        ways = 1
        for some in values.values():
            ways *= len(some)
        if ways > MOST_VALUES:
            self._weigh(chain.from_iterable(values.values()))
            values, ways = {key: one_of(some) for key, some in values.items()}, 1
        self._of_container.work(ways * len(word))
        made = []
        for way in product(*values.values()):
            chosen = dict(zip(values, way, strict=True))
            made.append(
                "".join([written_part(part, chosen[key], splits=splits) for key, part in zip(keys, word, strict=True)])
            )
        self._count(made)
        return made

    def _alone(self, part: Part, *, splits: bool) -> list[str]:
        """Put the values of a word's only part into it, as most are that are no text."""
        values = self._of_part(part, is_alone=True, splits=splits)
        if splits and isinstance(part, Reference) and part.is_quoted and not part.is_all:
            values = self._shortened.with_later(values)
        self._of_container.work(len(values))
        made = [written_part(part, one, splits=splits) for one in values]
        self._count(made, is_copy=part.is_quoted or not splits)
        return made

    def _count(self, made: list[str], *, is_copy: bool = False) -> None:
        """Count values that are made; *is_copy*: of what a variable holds, and nothing else."""
        steps = _STEPS_OF_WAY * len(made) + _STEPS_OF_MANY * max(0, len(made) - _FEW_WAYS)
        characters = sum(map(len, made))
        self._of_container.work(steps if is_copy else steps + characters // CHARACTERS_OF_STEP)
        if is_copy:
            self._of_container.copy(characters)

    def _of_part(self, part: Part, *, is_alone: bool, splits: bool) -> list[str]:
        match part:
            case Literal():
                return [part.text]
            case Number():
                self.calculates = True
                return [A_NUMBER]
            case Output():
                return [self._output(part.script)]
            case _:
                is_joined = not splits and part.is_all
                if is_joined and not self.is_known("IFS"):  # by nothing, if it is empty
                    return [ANYTHING]
                values = without_implied(self._referred(part, is_alone=is_alone))
                if is_joined and self.loses_first:
                    self._take_joined(part.name, values)
                return values

    def _take_joined(self, name: str, values: list[str]) -> None:
        """Take note of the texts that words make of which the first may be gone."""
        words = chain.from_iterable(self.elements(name))
        is_changing = self.shifts and any(self._changes(one) or not means_the_same(one) for one in words)
        texts = [one.replace(SPLIT, " ").replace(QUOTED, "") for one in values]
        self.has_changed |= self._shortened.add(texts, is_changing=is_changing)

    def may_be_shortened(self, text: str) -> bool:
        """Whether words were joined in a *text* of which the first may be gone, so that it may mean something else."""
        self._of_container.work(self._shortened.steps(text))
        return self._shortened.may_change(text)

    def _output(self, script: Script) -> str:
        """Return what commands write, which are looked at once."""
        key = id(script), self.context
        if key not in self._outputs:
            self._outputs[key] = ANYTHING  # where it stands in itself
            self._outputs[key] = self.setting("", lambda: [self._runs(script)])[0]
        return self._outputs[key]

    def _referred(self, part: Reference, *, is_alone: bool) -> list[str]:
        operator = part.operator.lstrip(":")
        is_several = part.name.endswith((ALL, POSITIONAL))
        if operator == "%" and not is_several:
            sign = "" if all(isinstance(one, Literal) for one in part.operand) else "?"  # a value is no pattern
            patterns = [f"{sign}{one}" for one in self.texts(part.operand)]
            values = self.of(part.name)
            self._count([*values * len(patterns), *patterns * len(values)])
            return part_of(values, patterns, is_number=not self.is_known(part.name))
        if operator in ("-", "="):
            self.own([part.name])
        held = self._elements(part, is_alone=is_alone) if is_several else self.of(part.name)
        if part.operator in (":-", ":=", ":?") and not (part.is_all and operator == "?"):
            held = [one for one in held if one]
        if operator in ("", "?"):
            return (self._shortened.with_later(held) if operator else held) or [""]
        told = "" if is_several else self.told(part.name)
        if told and operator != "+":
            return [told]
        other = self._default(part) if operator == "=" else self.texts(part.operand)
        if told:
            return other
        return list(dict.fromkeys([*([""] if operator == "+" else held), *other]))

    def _default(self, part: Reference) -> list[str]:
        """Take note of what `${NAME:=default}` sets, if NAME may be empty; returns what it may be."""
        texts = self.setting("", lambda: self.texts(part.operand))  # another variable is what that one holds
        is_filled = self.is_filled(part.name)
        for one in texts:
            if not is_filled:
                self.assign(part.name, one)
            self.made.append((part.name, one))
        return texts

    def _may_begin_elsewhere(self, name: str, groups: list[tuple[str, ...]]) -> bool:
        """Whether another word than the first may be the program, and is one that changes what a shell does."""
        some = [group for group in groups if group]
        if name == POSITIONAL and not self.joins:  # a program with a function's name behind it gives it all its words
            return self.shifts and any(one in CHANGING for group in some for one in group[1:])
        behind = [one for group in some for one in (group if len(some) > 1 else group[1:])]
        return (self.shifts or len(some) > 1) and any(map(self._changes, behind))

    def _at_place(self, part: Reference, groups: list[tuple[str, ...]]) -> Iterator[str]:
        """Yield what one of the words may be: any of them, but where they stand as they are given, and written out."""
        place = 0 if self.moves() else part.place
        written = [place > 0 and not any(UNREAD in one for one in group[:place]) for group in groups]
        if not groups or not all(written) or self.is_bare() or any(len(group) < place for group in groups):
            yield ""
        for group, is_written in zip(groups, written, strict=True):
            yield from group[place - 1 : place] if is_written else group

    def _elements(self, part: Reference, *, is_alone: bool) -> list[str]:
        groups = self.elements(part.name)
        if (ANYTHING,) in groups:
            return [SPLIT.join((ANYTHING, ANYTHING)) if part.is_all else ANYTHING]
        if part.name == self._now:
            return [REST]
        if part.is_all and (self.is_torn(part.name) or self._may_begin_elsewhere(part.name, groups)):
            return [SPLIT.join((ANYTHING, ANYTHING))]
        if not part.is_all:
            return list(dict.fromkeys(self._at_place(part, groups)))
        if not is_alone and self.count_words(part.name) > 1:
            return [SPLIT.join((ANYTHING, ANYTHING))]
        empty = QUOTED if part.is_quoted else ""
        return list(dict.fromkeys(["", *(SPLIT.join([one or empty for one in group]) for group in groups)]))
