"""The names of memory settings in `_cluster.yaml`: none is read in two ways, so one value is right for all."""

from collections.abc import Iterator, Sequence

import msgspec

from policies.cluster import Cluster
from policies.frameworks.catalogue import BUILT_IN
from policies.frameworks.framework import Framework, Override, Spelling
from policies.frameworks.settings import Setting, SettingIndex
from policies.frameworks.written_form import canonical
from policies.reading.document import Node
from policies.reading.faults import Fault, decode_share


def faults_of_shared_names(root: Node) -> Iterator[Fault]:
    """Yield what of the frameworks in a good `_cluster.yaml` has a name that another setting has in another sense."""
    cluster = msgspec.convert(root.value, Cluster, dec_hook=decode_share)
    own = {framework.name for framework in cluster.frameworks}
    built_in = [framework for framework in BUILT_IN if framework.name not in own]
    index = SettingIndex([*built_in, *cluster.frameworks])
    known = [Setting(framework, written) for framework in built_in for _, _, written in _written(framework)]
    for number, (entry, framework) in enumerate(zip(root.fields["frameworks"].items, cluster.frameworks, strict=True)):
        for place, prefix in enumerate(framework.option_prefixes):
            if message := _hides(prefix, known, index):
                line = entry.fields["optionPrefixes"].items[place].line
                yield Fault(f"frameworks[{number}].optionPrefixes[{place}]", line, message)
        for field, place, written in _written(framework):
            one = Setting(framework, written)
            if message := _message(one, known, index):
                line = entry.fields["memory"].fields[field].items[place].line
                yield Fault(f"frameworks[{number}].memory.{field}[{place}]", line, message)
            known.append(one)


def _written(framework: Framework) -> Iterator[tuple[str, int, Spelling | Override]]:
    """Yield the settings of a framework, each with the field and the place in it."""
    if framework.memory is not None:
        yield from (("spellings", place, one) for place, one in enumerate(framework.memory.spellings))
        yield from (("overriddenBy", place, one) for place, one in enumerate(framework.memory.overridden_by))


def _hides(prefix: str, known: Sequence[Setting], index: SettingIndex) -> str:
    """Say which variable would be found no longer, since the names that begin with *prefix* are read in capitals."""
    variables = ((one.framework.name, one.written.variable or "") for one in known)
    hidden = ((name, one) for name, one in variables if one.startswith(prefix) and index.variable(one) != one)
    name, variable = next(hidden, ("", ""))
    return f"{name} has {variable}, which begins so and is not in capitals: write a longer prefix" if variable else ""


def _message(one: Setting, known: Sequence[Setting], index: SettingIndex) -> str:
    """Say what is wrong with the name of a setting; empty if nothing is."""
    name, written = one.written.name, one.written
    if written.variable is not None and (in_capitals := index.variable(name)) != name:
        return f"what begins like {name} is read in capitals, by optionPrefixes: write {in_capitals}"
    other = next((other for other in known if _contradicts(written, other.written)), None)
    if other is None:
        return ""
    who = "this entry" if other.framework is one.framework else other.framework.name
    fix = "replace that by an entry of its name" if other.framework is not one.framework else "remove one of the two"
    if isinstance(written, Spelling) and isinstance(other.written, Spelling):
        what = f"{who} has {name} for a value of another form, and one of the two would be wrong"
        return f"{what}: write it as {who} does, or {fix}"
    if isinstance(written, Override) and isinstance(other.written, Override):
        return f"{who} has {name} with another separator: write it as {who} does, or {fix}"
    return (
        f"{who} has {name} too, and of one of the two it is the memory setting and of the other what overrides it, so "
        f"pods would be denied for what they are told: name another, or {fix}"
    )


def _contradicts(one: Spelling | Override, other: Spelling | Override) -> bool:
    """Whether both have one name, and what is right for the one is wrong for the other."""
    if one.variable != other.variable or canonical(one.argument or "") != canonical(other.argument or ""):
        return False
    if isinstance(one, Spelling) and isinstance(other, Spelling):
        return _differs(one, other)
    if isinstance(one, Override) and isinstance(other, Override):
        return one.separator != other.separator
    begins = [each.around[0] if isinstance(each, Spelling) else each.begins for each in (one, other)]
    are_told_apart = all(begins) and not begins[0].startswith(begins[1]) and not begins[1].startswith(begins[0])
    return not (one.separator and one.separator == other.separator and are_told_apart)


def _differs(one: Spelling, other: Spelling) -> bool:
    """Whether a value of the one is no value of the other."""
    are_told_apart = one.around[0] != other.around[0] and one.separator == other.separator
    may_be_told_apart = bool(one.separator) or (one.argument is not None and bool(one.around[0] and other.around[0]))
    return (one.value, one.separator) != (other.value, other.separator) and not (are_told_apart and may_be_told_apart)
