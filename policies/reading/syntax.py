"""What is wrong with a text that YAML's parser rejects, in words for its author."""

import re

import yaml

from policies.errors import quoted

_WORD = re.compile(r"[^\s,\]}]*")


def syntax_fault(error: yaml.YAMLError, text: str) -> tuple[int, str]:
    """Return the line, 1 is the first, and what is wrong there."""
    if isinstance(error, yaml.MarkedYAMLError):
        line, problem = _marked(error, text)
    elif isinstance(error, yaml.reader.ReaderError):
        line, problem = text.count("\n", 0, error.position), f"{error.reason}: remove them"
    else:
        line, problem = 0, f"{str(error).splitlines()[0]}: correct it"
    return line + 1, f"invalid YAML: {problem}"


def _marked(error: yaml.MarkedYAMLError, text: str) -> tuple[int, str]:
    problem, context = error.problem or "", error.context or ""
    mark = error.problem_mark or error.context_mark
    began = error.context_mark or mark
    if mark is None or began is None:
        return 0, f"{problem}: correct it"
    if "alias" in context or "undefined alias" in problem:
        start = began if "alias" in context else mark
        word = _WORD.match(_line(text, start.line), start.column)
        return (
            start.line,
            f"a value that begins with * is an alias: put it in quotes, {quoted(word[0] if word else '*')}",
        )
    character = _line(text, mark.line)[mark.column : mark.column + 1]
    if character == "\t":
        return mark.line, "a tab in the indentation: indent with spaces"
    if "cannot start any token" in problem:
        return mark.line, f"a value cannot begin with {quoted(character)[1:-1]}: put it in quotes"
    if "<document start>" in problem:
        return mark.line, "this follows the end of the document: correct the lines above it, or begin another by ---"
    if "mapping values" in problem:
        return mark.line, "a colon where no key can be: check the indentation, or put the value in quotes"
    if context.startswith("while parsing a block"):
        return mark.line, "this does not fit the lines above it: check the indentation"
    if "quoted scalar" in context and "end of stream" in problem:
        return began.line, "a quote is not closed: close it"
    if "flow" in context:
        return began.line, "a bracket or brace is not closed, or a comma is missing behind an item: add it"
    return mark.line, f"{problem}: correct it"


def _line(text: str, number: int) -> str:
    lines = text.split("\n")  # as YAML counts them, but for \r and the likes, which no editor writes alone
    return lines[number] if number < len(lines) else ""
