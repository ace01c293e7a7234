"""The memory settings of frameworks in `_cluster.yaml`: no name is read in two ways, so one value is right for all."""

from collections.abc import Iterator

import msgspec

from policies.cluster import Cluster
from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.framework import Framework, Spelling
from policies.frameworks.settings import canonical
from policies.reading.document import Node
from policies.reading.faults import Fault, decode_share


def faults_of_shared_names(root: Node) -> Iterator[Fault]:
    """Yield the spellings in a good `_cluster.yaml` whose name another framework has for a value of another form."""
    cluster = msgspec.convert(root.value, Cluster, dec_hook=decode_share)
    own = {framework.name for framework in cluster.frameworks}
    known = [framework for framework in BUILT_IN if framework.name not in own]
    for number, (entry, framework) in enumerate(zip(root.fields["frameworks"].items, cluster.frameworks, strict=True)):
        for index, spelling in enumerate(_spellings(framework)):
            other = next((one for one in known if any(_differs(spelling, theirs) for theirs in _spellings(one))), None)
            if other is not None:
                line = entry.fields["memory"].fields["spellings"].items[index].line
                what = (
                    f"{other.name} has {spelling.name} for a value of another form, and one of the two would be wrong"
                )
                fix = f"write it as {other.name} does, or replace that by an entry of its name"
                yield Fault(f"frameworks[{number}].memory.spellings[{index}]", line, f"{what}: {fix}")
        known.append(framework)


def _spellings(framework: Framework) -> Iterator[Spelling]:
    return iter(framework.memory.spellings if framework.memory else ())


def _differs(one: Spelling, other: Spelling) -> bool:
    """Whether both have one name, and a value of the one is no value of the other."""
    if one.variable != other.variable or canonical(one.argument or "") != canonical(other.argument or ""):
        return False
    are_told_apart = one.around[0] != other.around[0] and one.separator == other.separator
    may_be_told_apart = bool(one.separator) or (one.argument is not None and bool(one.around[0] and other.around[0]))
    return (one.value, one.separator) != (other.value, other.separator) and not (are_told_apart and may_be_told_apart)
