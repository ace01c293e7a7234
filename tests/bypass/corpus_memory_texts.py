"""Texts that start a framework with more memory than the share: what shells run, behind whatever starts them."""

from collections.abc import Iterator

from tests.bypass.attempt import variable
from tests.bypass.greedy import CONF, CONFIG_MAP, FRACTION, JAX, USE, Greedy

_DENIED = (
    f"vllm serve m '{USE}' 0.95",
    f'vllm serve m "{USE}"="0.95"',
    'vllm serve m --gpu-memory-"util"ization=0.95',
    "vllm serve m --gpu-mem\\ory-utilization=0.95",
    "vllm serve m --gpu-memory-\\\nutilization=0.95",
    f"{CONF}='{FRACTION} : 0.95' python train.py",
    f"O={USE}=0.95; vllm serve m $O",
    f"(vllm serve m {USE}=0.95)&",
    f"vllm${{IFS}}serve${{IFS}}m${{IFS}}{USE}=0.95",
    f'set -- {USE} 0.95; vllm serve m "$@"',
    f"{JAX}=0.95 python train.py",
    f"export {CONF}={FRACTION}:0.95; python train.py",
    f"export {CONF}='roundup_power2_divisions:[256:1,>:8],{FRACTION}:0.95'; python train.py",
    f"export {CONF}='max_split_size_mb:128;,{FRACTION}:0.95'; python train.py",
    f"python -c \"import os; os.environ['{JAX}'] = '0.95'\"",
    f"setenv {JAX} 0.95; python train.py",
    f"set -x {JAX} 0.95; python train.py",
    f"GPU_SHARE_FRACTION=0.95; vllm serve m {USE}=$GPU_SHARE_FRACTION",
    f"U=0.95; vllm serve m {USE} $U",
)  # fmt: skip
# One of the values that it may have, or a tool's word.
_POSSIBLE = (f"vllm serve m `echo {USE}=0.95`", f"vllm serve m {USE}=${{U:-0.95}}")
# What such a text sets is seen by the shell alone.
_UNREAD = (
    f"vllm serve m {USE}=$U",
    f"vllm serve m {USE}=$(cat /u)",
    f"vllm serve m {USE}=`cat /u`",
    f"vllm serve m `echo {USE}` 0.95",
    f"vllm serve m $(echo {USE}) 0.95",
    "vllm serve m --gpu-memory-$U=0.95",
    "vllm serve m --gpu-memory-{utilization=0.95,x}",
    "vllm serve m --gp=0.95",
    f"{JAX}=$U python train.py",
)


def wrapped() -> Iterator[Greedy]:
    text = f"exec vllm serve m {USE} 0.95"
    for words in (
        ["sh", "-c", text],
        ["bash", "-lc", text],
        ["fish", "-c", text],
        ["busybox", "sh", "-c", text],
        ["gosu", "app", "sh", "-c", text],
        ["su-exec", "app:app", "ash", "-c", text],
        ["su", "app", "-c", text],
        ["runuser", "-u", "app", "--", "bash", "-c", text],
        ["setpriv", "--reuid", "1000", "sh", "-c", text],
        ["chroot", "/newroot", "sh", "-c", text],
        ["sudo", "-u", "app", "sh", "-c", text],
        ["unshare", "-r", "sh", "-c", text],
        ["env", "-S", f"vllm serve m {USE}=0.95"],
        ["env", "-S", rf"vllm\_serve\_m\_{USE}=0.95"],
        ["env", "A=1", "sh", "-c", text],
        ["xargs", "-I", "{}", "sh", "-c", text],
        ["argoexec", "emissary", "--loglevel", "info", "--", "sh", "-c", text],
        ["tini", "--", "taskset", "-c", "0-3", "ionice", "-c", "2", "stdbuf", "-oL", "sh", "-c", text],
        ["nobody-knows-this", "--run", text],
        ["python3", "-c", f"import os; os.execvp('vllm', ['vllm', 'serve', 'm', '{USE}', '0.95'])"],
        ["perl", "-e", f"exec 'vllm serve m {USE}=0.95'"],
        ["bash", "start.sh", f"{USE}=0.95"],
        ["sh", "-c", 'exec vllm serve "$@"', "x", f"{USE}=0.95"],
    ):
        yield Greedy(f"{' '.join(words[:4])[:40]!a} {len(words)}", {"command": words}, "denied", "denied")
    for words in (
        ["gosu", "app", "vllm", "serve", "m", f"{USE}=0.95"],
        ["setpriv", "--reuid=1000", "vllm", "serve", "m", USE, "0.95"],
        ["nobody-knows-this", "--", f"{USE}=0.95"],
        ["xargs", "vllm", "serve", f"{USE}=0.95"],
        ["argoexec", "emissary", "--", "vllm", "serve", "m", "--gpu=0.95"],
        ["argoexec", "--loglevel", f"{USE}=0.95", "emissary", "--", "vllm", "serve", "m"],
        ["./argoexec", "emissary", "--", "echo", "m", f"{USE}=0.95"],
        ["python3", "-u", "-m", "vllm.entrypoints.openai.api_server", "--gp=0.95"],
    ):
        yield Greedy(f"{' '.join(words[:4])[:40]!a} {len(words)}", {"command": words}, "lowered", "lowered")


def texts() -> Iterator[Greedy]:
    for text in _DENIED:
        yield Greedy(f"the text {text!a}", {"command": ["sh", "-c", text]}, "denied", "denied")
    for text in _POSSIBLE:
        yield Greedy(f"the text {text!a}", {"command": ["sh", "-c", text]}, "limited", "denied")
    for text in _UNREAD:
        yield Greedy(f"the text {text!a}", {"command": ["sh", "-c", text]}, "warned", "denied")
    extra = [variable("EXTRA", f"{USE} 0.95")]
    shell = {"command": ["sh", "-c", "vllm serve m $EXTRA"]}
    yield Greedy("a shell's variable with the option", shell | {"env": extra}, "lowered", "lowered")
    by_kubelet = {"command": ["sh", "-c", "vllm $(EXTRA)"], "env": extra}
    yield Greedy("the same by the kubelet", by_kubelet, "lowered", "lowered")
    unread = {"env": [variable("EXTRA", None, **CONFIG_MAP)]}
    yield Greedy("a shell's variable of a ConfigMap", shell | unread, "warned", "denied")
    yield Greedy("the share in a shell", {"command": ["sh", "-c", f"vllm {USE}=$GPU_SHARE_FRACTION"]}, "kept", "kept")
    hook = {"lifecycle": {"postStart": {"exec": {"command": ["vllm", "serve", USE, "0.95"]}}}}
    yield Greedy("a hook", hook, "denied", "denied")
    yield Greedy("a probe", {"startupProbe": {"exec": {"command": ["sh", "-c", f"x {USE}=0.95"]}}}, "denied", "denied")
