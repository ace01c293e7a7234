"""The pods that are dearest to decide on: each fills its body with one thing, up to what is denied for its number."""

import json
from collections.abc import Iterator
from typing import Any

from policies.size import (
    LONGEST_TEXT,
    MOST_CONTAINERS,
    MOST_MOUNTS,
    MOST_QUANTITIES,
    MOST_SHARES,
    MOST_VARIABLES,
    MOST_VOLUMES,
    MOST_WORDS,
)
from tests.bench.worst_texts import Worst, beside_texts, env, filled, makers, mixed, references, shell_texts, word_lists
from tests.bench.worst_together import together
from tests.bench.worst_unread import unread
from tests.policies.pods import VGPU, container, limited, pod

_CONF = "PYTORCH_CUDA_ALLOC_CONF"


def worst_pods(size: int) -> Iterator[Worst]:
    """Yield the pods by name, each of about *size* bytes; what is counted comes as often as that takes."""
    yield from word_lists(size)
    yield from shell_texts(size)
    yield from _variables(size)
    yield from _containers(size)
    yield from _rest(size)
    yield from makers(size)
    yield from references(size)
    yield from mixed(size)
    yield from beside_texts(size)
    yield from unread(size)
    yield from together(size)


def widest(size: int) -> Iterator[Worst]:
    """Yield pods whose texts take four bytes for each character in memory, because one of them does."""
    text = "\U0001f600" + "x" * (LONGEST_TEXT - len("\U0001f600 -gp=0 $A"))
    count = size // LONGEST_TEXT
    yield "wide words", pod("0.2", container(command=[text] * count))
    yield "wide values", pod("0.2", container(env=[{"name": f"A{n}", "value": text} for n in range(count)]))
    shell = ["sh", "-c", f"{text} -gp=0 $A"]
    yield "wide shells' texts", pod(None, *(limited(f"c{n}", 1, command=shell) for n in range(count)))
    hook = {"postStart": {"exec": {"command": shell}}}
    yield "wide hooks' texts", pod(None, *(limited(f"c{n}", 1, lifecycle=hook) for n in range(count)))
    yield from _wide(size)


def _wide(size: int) -> Iterator[Worst]:
    whole = "\U0001f600" + "a/" * (size // 2)
    yield "a wide grant", pod("0.2", annotations={"gpu-share.dev/grant": whole})
    yield "a wide image", pod("0.2", container(image=whole))
    yield "a wide word", pod("0.2", container(command=[whole]))
    shell = ["sh", "-c", f"{whole} -gp=0 $A"]
    yield "a wide shell's text", pod("0.2", container(command=shell))
    yield "a wide hook's text", pod("0.2", container(lifecycle={"postStart": {"exec": {"command": shell}}}))
    yield "a wide mountPath", pod("0.2", container(volumeMounts=[{"name": "v", "mountPath": whole}]))
    yield "a wide path of the node", pod("0.2", volumes=[{"name": "v", "hostPath": {"path": whole}}])
    yield "a wide capability", pod("0.2", container(securityContext={"capabilities": {"add": [whole]}}))


def at_the_limits(size: int) -> Iterator[Worst]:
    """Yield pods that are as large as any that is decided on."""
    for name, words in (
        ("options", ["-a"]),
        ("options of a framework", ["--mem=0"]),
        ("references", ["$(A)"]),
        ("texts", ["a -gp"]),
        ("wrappers", ["env"]),
    ):
        many = (words * MOST_WORDS)[:MOST_WORDS]
        yield f"{MOST_WORDS} {name}", pod("0.2", container(command=many, env=env(10)))
    for name, unit in (("options that differ", "-a{}"), ("words that differ", "a{}"), ("texts that differ", "-a{} b")):
        yield f"{MOST_WORDS} {name}", pod("0.2", container(args=[unit.format(n) for n in range(MOST_WORDS)]))
    filling = size // MOST_VARIABLES - 30
    yield f"{MOST_VARIABLES} variables", pod("0.2", container(env=env(MOST_VARIABLES, "x" * filling)))
    yield f"{MOST_VARIABLES} variables of a framework", pod("0.2", container(env=_same(MOST_VARIABLES)))
    yield f"{MOST_VARIABLES} reserved variables", pod("0.2", container(env=env(MOST_VARIABLES, name="CUDA_MPS_")))
    none = {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}
    yield f"{MOST_VARIABLES} variables that hide", pod("0.2", container(), container("b", env=[none] * MOST_VARIABLES))
    yield from _full(size)


def _full(size: int) -> Iterator[Worst]:
    names = [f"c{number}" for number in range(MOST_CONTAINERS)]
    plain = [container(name) for name in names]
    yield f"{MOST_CONTAINERS} containers", pod("0.2", *plain)
    asked = {f"container.gpu-share.dev/{name}": "0.001" for name in names}
    yield f"{MOST_CONTAINERS} containers with a share", pod(None, *plain, annotations=asked)
    limited = [one | {"resources": {"limits": {VGPU: 1}}} for one in plain]
    yield f"{MOST_CONTAINERS} containers with a limit", pod(None, *limited)
    images = [one | {"image": "/".join(["a"] * 255)} for one in limited]
    yield f"{MOST_CONTAINERS} images of many steps", pod(None, *images)
    quantities = {f"nvidia.com/gpu{number}": "0.0m" for number in range(MOST_QUANTITIES)}
    yield f"{MOST_QUANTITIES} quantities", pod("0.2", container(resources={"limits": quantities}))
    scratch = [{"name": f"v{number}", "emptyDir": {}} for number in range(MOST_VOLUMES)]
    for path in ("/dev/shm", "/tmp/nvidia-mps/x", "/a/./b", "/" + "a/" * (size // MOST_MOUNTS // 2) + "."):
        mounts = [{"name": scratch[-1]["name"], "mountPath": path}] * MOST_MOUNTS
        shortened = path if len(path) < 30 else f"{path[:30]}…"
        yield f"{MOST_MOUNTS} mounts at {shortened}", pod("0.2", container(volumeMounts=mounts), volumes=scratch)
    spread = [one | {"volumeMounts": [{"name": "v1", "mountPath": "/dev/shm"}] * 3} for one in limited]
    yield "mounts in every container", pod(None, *spread, volumes=scratch)
    readable = [{"name": f"v{n}", "mountPath": "/d", "readOnly": True} for n in range(MOST_VOLUMES)]
    hosts = [{"name": f"v{number}", "hostPath": {"path": "/data/" + "x/" * 40}} for number in range(MOST_VOLUMES)]
    often = readable * (MOST_MOUNTS // MOST_VOLUMES)
    yield f"{MOST_VOLUMES} hostPath volumes", pod("0.2", container(volumeMounts=often), volumes=hosts)


def _variables(size: int) -> Iterator[Worst]:
    for unit in (
        ",",
        "a:1,",
        "per_process_memory_fraction:0,",
        "per_process_memory_fraction:1,",
        "backend:native,",
        " ",
    ):
        value = filled(unit, size)
        yield f"{_CONF} of {unit!a}", pod("0.2", container(env=[{"name": _CONF, "value": value}]))
    signs = f"{':' * 3900}xbackendxper_process_memory_fraction"
    for what, value in (("", "per_process_memory_fraction:1," * 130), (" with signs", signs)):
        conf = {"name": _CONF, "value": value}
        yield f"{_CONF} again and again{what}", pod("0.2", container(env=[conf] * (size // 4000)))
    for unit in ("--gpu ", "$A ", "`a`", "[", "{,", "a[b]=1;", "XLA_PYTHON_CLIENT_MEM_FRACTIO"):
        for name in ("A", "PS4"):
            on = container(env=[{"name": name, "value": filled(unit, size)}])
            yield f"the variable {name} of {unit!a}", pod("0.2", on)
        kept = f"$A; sed '{filled(unit, size)}'; eval $1"
        yield f"a text kept of {unit!a}", pod("0.2", container(command=["sh", "-c", kept]))
    doubling = [{"name": f"A{n + 1}", "value": f"$(A{n})$(A{n})"} for n in range(100)]
    bomb = [{"name": "A0", "value": filled("x", size)}, *doubling]
    yield "variables that double", pod("0.2", container(command=["$(A9)"], env=bomb))
    again = container(command=["sh", "-c", "$A " * 100], env=env(1, filled("-gp=0 ", size)))
    yield "a variable again and again", pod("0.2", again)
    yield "a long name of a variable", pod("0.2", container(env=[{"name": filled("x", size)}]))


def _containers(size: int) -> Iterator[Worst]:
    many = [{"name": "a"}] * (size // 13)
    yield "containers of one name", pod("0.2", *many)
    yield "init containers", pod("0.2", initContainers=many)
    yield "ephemeral containers", pod("0.2", ephemeralContainers=many)
    named = [{"name": f"c{number}"} for number in range(size // 60)]
    asked = {f"container.gpu-share.dev/c{number}": "0.1" for number in range(size // 60)}
    yield "containers with a share", pod(None, *named, annotations=asked)
    yield from images_of_steps(size)
    for words in (["--gp .9 --gp .9"] * 31, ["-gp .9 " * 60], ["--gpu-memory-utilization=0.1"] * 31):
        count = min(size // len(json.dumps(words)), MOST_CONTAINERS - 1)
        first = [container(f"c{number}", args=words) for number in range(count)]
        shares = {f"container.gpu-share.dev/c{number}": "0.1" for number in range(count)}
        yield f"settings {words[0][:12]!a} in all", pod(None, container(), initContainers=first, annotations=shares)
    mentions = ["sh", "-c", "tr a b", *(f"curl lmdeploy serve api_server $(A) {number}" for number in range(28))]
    count = min(size // len(json.dumps(mentions)), MOST_SHARES - 1)
    first = [container(f"c{number}", command=mentions, env=env(4)) for number in range(count)]
    shares = {f"container.gpu-share.dev/c{number}": "0.1" for number in range(count)}
    yield "mentions of programs in all", pod(None, container(), initContainers=first, annotations=shares)
    zero = [{"name": "a", "resources": {"limits": {VGPU: "0.0"}, "requests": {VGPU: "0.0"}}}] * (size // 110)
    yield "limits of zero", pod(None, *zero, {"name": "b", "resources": {"limits": {VGPU: 1}}})
    yield "one long name", pod("0.2", container(filled("x", size)))


def images_of_steps(size: int, *, first: int = 0) -> Iterator[Worst]:
    """Yield pods of images that end in numbers from *first* on: of an image that was seen the framework is kept."""
    count = max(1, min(size // 570, MOST_SHARES))
    for unit in ("a/", "s/", "team"):
        images = (f"{filled(unit, 500)}{first + number}" for number in range(count))
        yield f"images of {unit!a}", pod(None, *(limited(f"c{n}", 1, image=image) for n, image in enumerate(images)))


def _rest(size: int) -> Iterator[Worst]:
    yield "volumes", pod("0.2", volumes=[{"name": "v"}] * (size // 13))
    yield "mounts", pod("0.2", container(volumeMounts=[{"name": "v", "mountPath": "/"}] * (size // 30)))
    yield "tolerations", pod("0.2", tolerations=[{}] * (size // 4))
    yield "references in envFrom", pod("0.2", container(envFrom=[{}] * (size // 4)))
    yield "variables", pod("0.2", container(env=[{"name": "A"}] * (size // 15)))
    yield "capabilities", pod("0.2", container(securityContext={"capabilities": {"add": ["a"] * (size // 5)}}))
    for kind in ("annotations", "labels"):
        on = pod("0.2")
        on["metadata"][kind] = {f"container.gpu-share.dev/{n}": "0.2" for n in range(size // 40)} | {"gpu-share": "0.2"}
        yield kind, on
    on = pod("0.2")
    on["metadata"]["annotations"]["gpu-share.dev/grant"] = '{"containers":' + filled("{", size)
    yield "a deep grant", on
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    on["spec"]["containers"][0]["unknown"] = [deep] * (size // 600)
    yield "unknown fields, nested", on
    limits = {"limits": {f"a{number}": "1.5" for number in range(size // 14)}}
    yield "quantities", pod("0.2", container(resources=limits))
    yield "one long quantity", pod("0.2", container(resources={"limits": {"cpu": filled("9", size)}}))
    yield "selector", pod("0.2", nodeSelector={f"a{number}": "" for number in range(size // 14)})


def _same(count: int) -> list[dict[str, Any]]:
    return [{"name": "XLA_PYTHON_CLIENT_MEM_FRACTION", "value": "0.1"}] * count
