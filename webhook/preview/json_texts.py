"""JSON as YAML that says the same: objects, or several one after the other, as `kubectl` takes both."""

import json
import re

import msgspec

_SURROGATES = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
# Characters that JSON has in its texts as they are, and YAML not at all, or as the end of a line.
_NOT_IN_YAML = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_KEY = re.compile(r'"(?:(?>[^"\\]|\\.))*+"(\s*:)?')  # or another text, without the colon
_LONGEST_KEY = 1000  # characters; YAML takes 1024 without a question mark
_BETWEEN = re.compile(r"[ \t\r\n]*")
_scan = json.JSONDecoder().raw_decode


def as_yaml(text: str) -> str:
    """Write JSON so that YAML reads the same in it, in its lines where each object has its own; else return *text*."""
    # Some characters are a pair of escapes there, which YAML does not know.
    text = _SURROGATES.sub(lambda pair: str(json.loads(f'"{pair[0]}"')), text)
    if not _is_one(text):
        parts = _parts(text)
        if not all(map(_is_one, parts)):
            return text
        text = "".join(parts[:1] + [_begun(one) for one in parts[1:]])
    text = _NOT_IN_YAML.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)
    return _KEY.sub(lambda one: f"? {one[0]}" if one[1] and len(one[0]) > _LONGEST_KEY else one[0], text)


def _is_one(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return False
    return True


def _parts(text: str) -> list[str]:
    """Part objects that follow one another, each with the space around it; give the whole where something else does."""
    parts, at = [], 0
    while at < len(text):
        try:
            _, end = _scan(text, _end_of_space(text, at))
        except (ValueError, RecursionError):
            return [text]
        behind = _end_of_space(text, end)
        end = behind if behind == len(text) else end
        parts.append(text[at:end])
        at = end
    return parts


def _end_of_space(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    return found.end() if found else at


def _begun(part: str) -> str:
    """Begin a document with it."""
    begin = _end_of_space(part, 0)
    lines, newline, _ = part[:begin].rpartition("\n")
    return f"{lines}{newline or chr(10)}--- {part[begin:]}"
