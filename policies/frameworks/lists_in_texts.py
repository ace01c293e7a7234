"""Lists of settings in a text: where they end, what stands in them first, and whether one of ours may."""

import re
from bisect import bisect_left
from typing import Final

# A sign of the list follows none of these that ends a command: PyTorch's own are `[512:2,>:8]`.
_ENDING: Final = {",": ";|&<>", ";": "|&<>"}
_END: Final = {
    sign: re.compile(rf"[\n\x7f{ends}](?:(?<=[\n\x7f])|(?![^\S\n]*[:,{sign}]))") for sign, ends in _ENDING.items()
}
# With the spaces beside its signs.
_FIRST: Final = {sign: re.compile(rf"(?:(?>[^\S\n]*+[:,{sign}][^\S\n]*+|[^\s:,{sign}]++))*+") for sign in _END}
_ITEM: Final = {sign: re.compile(rf"{sign}\s*[A-Za-z_]\w*\s*:", re.ASCII) for sign in _END}
_SIGN = re.compile("[:,;]")
LONGEST_FIRST: Final = 512  # characters


class ListsInText:
    """
    Looks at the lists in one text, of which many may begin at the same end.

    Each character is looked at once for each sign between settings, and for each way in which a setting begins.
    """

    def __init__(self, text: str) -> None:
        """Look in *text*."""
        self.text = text
        self._known: dict[str, list[tuple[int, int]]] = {sign: [] for sign in _END}  # stretches, each up to an end
        self._begun: dict[str, list[int]] = {}  # where words begin like settings

    def end(self, sign: str, begin: int, limit: int) -> int:
        """Return where a list ends that begins at *begin*, with *sign* between its settings: at *limit* the latest."""
        return min(self._end(sign, begin), limit)

    def may_have(self, setting: str, begin: int, end: int) -> bool:
        """Whether from *begin* to *end* may stand what a *setting* begins with."""
        word = _SIGN.split(setting, maxsplit=1)[0]
        if word not in self._begun:
            self._begun[word] = [match.start() for match in re.finditer(re.escape(word), self.text)]
        places = self._begun[word]
        at = bisect_left(places, begin)
        return at < len(places) and places[at] < end

    def _end(self, sign: str, begin: int) -> int:
        known = self._known[sign]
        for first, last in known:
            if first <= begin <= last:
                return last
        reach, behind = min((one for one in known if one[0] > begin), default=(len(self.text),) * 2)
        found = _END[sign].search(self.text, begin, reach)
        if found is not None and _END[sign].match(self.text, found.start()) is None:  # with what stands at *reach*
            found = None
        last = found.start() if found is not None else behind
        known.append((begin, last))
        return last


def first_of_list(text: str, sign: str, begin: int, end: int) -> str:
    """Return the settings with which a list begins, up to a space that is beside no sign: no more than is looked at."""
    match = _FIRST[sign].match(text, begin, min(end, begin + LONGEST_FIRST))
    return match[0] if match else ""


def begins_an_item(text: str, sign: str, begin: int, end: int) -> bool:
    """Whether at *begin* stands the sign between settings, and the name of one."""
    return _ITEM[sign].match(text, begin, end) is not None
