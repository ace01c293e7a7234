"""Whatever a configuration says: the files that come out are valid, and no key is lost in silence."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.migration.nvidia import NO_DEFAULT
from policies.migration.nvidia_keys import KEYS
from policies.migration.report import as_json, as_text
from tests.policies.migration.configurations import imported, in_force, written

# PyYAML writes the word Y without quotes, and it is a boolean to NVIDIA's plugin.
WORDS = st.text("abcdefXYZ./-", min_size=1, max_size=12).filter(lambda word: word != "Y")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "version": st.just("v1"),
    "flags.migStrategy": st.sampled_from(["none", "single", "mixed"]),
    "flags.deviceDiscoveryStrategy": st.sampled_from(["auto", "nvml", "tegra"]),
    "flags.plugin.deviceIDStrategy": st.sampled_from(["uuid", "index"]),
    "flags.plugin.sharedDevicesAllocationPolicy": st.sampled_from(["distributed", "packed"]),
    "flags.plugin.deviceListStrategy": st.sampled_from(["envvar", "volume-mounts", ["cdi-cri", "envvar"], []]),
    "flags.gfd.sleepInterval": st.sampled_from(["60s", "infinite", 1000]),
    "resources.gpus": st.lists(st.fixed_dictionaries({"pattern": WORDS, "name": WORDS}), max_size=2),
    "resources.mig": st.lists(st.fixed_dictionaries({"pattern": WORDS, "name": WORDS}), max_size=2),
    "imex.channelIDs": st.sampled_from([[], [0]]),
}
REPLICATED = st.fixed_dictionaries(
    {
        "resources": st.lists(
            st.fixed_dictionaries(
                {
                    "name": st.sampled_from(["nvidia.com/gpu", "gpu", "nvidia.com/mig-1g.5gb", "other"]),
                    "replicas": st.integers(2, 300),
                },
                optional={
                    "rename": WORDS,
                    "devices": st.sampled_from(["all", 2, [0, "1", "0:1", "GPU-b1028956-cfa2-0990-bf4a-5da9abb51763"]]),
                    "unknown": st.integers(),
                },
            ),
            min_size=1,
            max_size=3,
        )
    },
    optional={
        "renameByDefault": st.booleans(),
        "failRequestsGreaterThanOne": st.booleans() | st.none(),
        "unknown": WORDS,
    },
)


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for path, value in flat.items():
        *sections, key = path.split(".")
        inner = made
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[key] = value
    return made


def value_of(key: str) -> st.SearchStrategy[Any]:
    return VALUES.get(key, st.booleans() if KEYS[key].of is bool else WORDS)


CONFIGURATIONS = st.fixed_dictionaries(
    {},
    optional={
        **{key: value_of(key) for key in KEYS},
        "sharing.mps": REPLICATED,
        "sharing.timeSlicing": REPLICATED,
        "unknown": WORDS,
        "flags.plugin.unknown": WORDS,
    },
).map(nested)
NAMES = st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?", fullmatch=True).filter(
    lambda name: "--" not in name
)


def leaves(value: Any, path: str = "") -> list[str]:
    """The keys that are written."""
    if path in KEYS or path in ("sharing.mps", "sharing.timeSlicing") or not isinstance(value, dict):
        return [path]
    return [leaf for key, inner in value.items() for leaf in leaves(inner, f"{path}.{key}".lstrip("."))]


@given(CONFIGURATIONS)
@settings(max_examples=150, deadline=None)
def test_a_configuration_becomes_valid_files_and_no_key_is_lost(configuration: dict[str, Any]) -> None:
    made = imported(configuration)
    in_force(made)
    found = [one.key for one in made.findings]
    for key in leaves(configuration) if configuration else ():
        assert any(one == key or one.startswith(f"{key}.") for one in found), key
    for line in as_text(made, "config.yaml"):
        assert line.isprintable() or "\n" in line


@given(
    st.dictionaries(NAMES, CONFIGURATIONS, min_size=1, max_size=4).filter(
        lambda named: len({name.lower() for name in named}) == len(named)
    ),
    st.data(),
)
@settings(max_examples=100, deadline=None)
def test_several_configurations_become_valid_files(named: dict[str, Any], data: st.DataObject) -> None:
    # As JSON, since PyYAML writes the name 0E0 without quotes, and it is a number to Kubernetes.
    text = json.dumps({"kind": "ConfigMap", "data": {name: written(one) for name, one in named.items()}})
    default = data.draw(st.sampled_from([None, NO_DEFAULT, *named]))
    labels = data.draw(st.lists(st.sampled_from([*named, "<none>"]), min_size=1, max_size=5))
    columns = "".join(f"node-{index} {label}\n" for index, label in enumerate(labels))
    nodes = data.draw(st.sampled_from([None, ("nodes", columns)]))
    made = imported(text, default=default, nodes=nodes)
    policies = in_force(made)
    told = as_json(made)
    for group, shown in zip(made.groups, told["configurations"], strict=True):
        if group.rules is None:
            continue
        assert group.rules.unit.share.vgpus(policies.cluster.vgpus_per_gpu) == shown["vgpus"]
        for node in group.names:  # which NVIDIA's plugin shares in the same way
            assert policies.cluster.strategy(node=node, model="any", index=0, otherwise="mps") == group.rules.strategy
    exact = all(one["isExact"] for one in told["configurations"] if one["strategy"])
    assert exact or any("vgpusPerGpu" in one for one in made.questions)
