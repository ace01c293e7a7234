"""The constants of frameworks in `_cluster.yaml`: none makes a memory setting for which its pods are denied."""

from collections.abc import Iterator
from typing import Final

import msgspec

from policies.cluster import Cluster
from policies.contract import MPS, VgpuStrategy
from policies.denial import DeniedError
from policies.errors import quoted
from policies.frameworks.allowance import Allowance
from policies.frameworks.budget import Budget
from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.command_line import steps_beside
from policies.frameworks.detection import Catalogue
from policies.frameworks.framework import Constant, Spelling
from policies.frameworks.judge import OwnValue
from policies.frameworks.memory import Wish, advise
from policies.pod import Container, Variable
from policies.reading.document import Node
from policies.reading.faults import Fault, decode_share

_LEAST: Final = 1  # thousandths of a GPU: what is within such a share is within every one


def faults_of_constants(root: Node) -> Iterator[Fault]:
    """Yield the constants in a good `_cluster.yaml` for which admission would deny pods when it is asked again."""
    cluster = msgspec.convert(root.value, Cluster, dec_hook=decode_share)
    catalogue = Catalogue(BUILT_IN, cluster.frameworks)
    for number, (entry, framework) in enumerate(zip(root.fields["frameworks"].items, cluster.frameworks, strict=True)):
        for index, constant in enumerate(framework.constants):
            said = (_fault(constant, strategy, catalogue) for strategy in constant.strategies)
            if message := next(filter(None, said), "") or _fault_of_name(constant, catalogue):
                line = entry.fields["constants"].items[index].line
                yield Fault(f"frameworks[{number}].constants[{index}]", line, message)


def _fault(constant: Constant, strategy: VgpuStrategy, catalogue: Catalogue) -> str:
    """Say why a container with nothing but the constant would not be admitted as it is; empty if it would."""
    container = Container(name="main", env=[Variable(constant.variable, constant.value)])
    budget = Budget(share=_LEAST, target=_LEAST, strategy=strategy, granted=_LEAST)
    try:
        own = advise(container, Wish(adds=False), budget, catalogue, Allowance(steps_beside([container]))).own
    except DeniedError:
        return f"{constant.variable} is longer than what is read of a pod: write less, or put it into the image"
    return next(filter(None, (_fault_of(one, strategy) for one in own)), "")


def _fault_of_name(constant: Constant, catalogue: Catalogue) -> str:
    """Say that the share is told by the variable too, if it is: a container has one value of it."""
    settings = catalogue.settings.variables.get(catalogue.settings.variable(constant.variable), ())
    who = next((one.framework.name for one in settings if isinstance(one.written, Spelling)), "")
    return f"{who} is told its share by {constant.variable}, which has one value: put it into the image" if who else ""


def _fault_of(one: OwnValue, strategy: VgpuStrategy) -> str:
    if one.verdict == "within" or (one.verdict == "overriding" and strategy == MPS):
        return ""
    if one.verdict == "overriding" and one.framework is not None:
        who = f"with {quoted(one.name)} {one.framework.name} takes memory whatever its share is"
        return f"{who}, and pods under time-slicing are denied for it: remove it, or write strategies: [mps]"
    sets = "sets" if one.is_certain else "may set"
    what = f"{sets} {quoted(one.name)}, a memory setting that is not within every share, and pods are denied for it"
    return f"{what} or lowered: describe it in memory.spellings, or remove it"
