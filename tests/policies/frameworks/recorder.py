"""A reading of command lines that takes note of the words which the command `p` gets."""

from typing import Any

import msgspec

from policies.frameworks.allowance import Allowance
from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.command_line import steps_beside
from policies.frameworks.detection import Catalogue
from policies.frameworks.expansion import Variables
from policies.frameworks.shell.command_words import Call, CommandWords
from policies.frameworks.unread_words import UnreadWords
from policies.pod import Container

INDEX = Catalogue(BUILT_IN, ()).settings
ENV = {"A": "a", "B": "b  c", "EMPTY": "", "D": "--d=1", "Q": "x'y"}


class Recorder(UnreadWords):
    """Takes note of the words that the command `p` gets."""

    def __init__(self, allowance: Allowance | None = None, **fields: Any) -> None:
        env = [{"name": name, "value": value} for name, value in ENV.items()]
        container = msgspec.convert({"name": "main", "env": env} | fields, Container)
        super().__init__(Variables(container, allowance or Allowance()), INDEX)

    def _again(self) -> None:
        super()._again()
        self.commands: list[CommandWords] = []

    def _judge(self, call: Call) -> str:
        if call.words.line[:1] == ["p"]:
            self.commands.append(call.words.behind(1))
        return super()._judge(call)


def recorded(text: str) -> Recorder:
    recorder = Recorder()
    recorder.look_at(["sh", "-c", text, "$"], is_command=True)
    return recorder


def read(text: str) -> list[CommandWords]:
    return recorded(text).commands


def looked_at(words: list[str], *, is_command: bool = True, **fields: Any) -> Recorder:
    recorder = Recorder(Allowance(steps_beside([Container(name="main", command=words)])), **fields)
    recorder.look_at(words, is_command=is_command)
    return recorder
