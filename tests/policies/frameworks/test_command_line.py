"""What a command line runs behind what wraps it."""

import msgspec
import pytest

from policies.frameworks.command_line import CommandLine
from policies.pod import Container

TEXT = "vllm serve m"


def line(text: str) -> CommandLine:
    return CommandLine(msgspec.convert({"name": "main", "command": text.split()}, Container))


@pytest.mark.parametrize(
    "words",
    [
        TEXT,
        f"/usr/local/bin/{TEXT}",
        f"tini -g -- {TEXT}",
        f"env A=b -u C {TEXT}",
        f"env -i -- A=b {TEXT}",
        f"timeout -k 5 -- 10s {TEXT}",
        f"chroot -- /newroot {TEXT}",
        f"nice -n 5 ionice -c 2 -n 7 {TEXT}",
        f"timeout -k 5 10s {TEXT}",
        f"gosu app {TEXT}",
        f"gosu 1000 {TEXT}",
        f"su-exec app:app {TEXT}",
        f"chroot --userspec=1:1 /newroot {TEXT}",
        f"setpriv --reuid 1000 --regid=1000 --init-groups {TEXT}",
        f"runuser -u app -- {TEXT}",
        f"sudo -E -u app {TEXT}",
        f"sudo -nu app {TEXT}",
        f"sudo -uapp --prompt x {TEXT}",
        f"sudo --pro curl {TEXT}",
        f"strace -fqP curl {TEXT}",
        f"time --output curl {TEXT}",
        f"nice --adj 5 {TEXT}",
        f"xargs -0I curl {TEXT}",
        f"xargs -I{{}} {TEXT}",
        f"taskset -c 0-3 {TEXT}",
        f"stdbuf -oL -e L {TEXT}",
        f"numactl --cpunodebind=0 -m 0 {TEXT}",
        f"unshare -r {TEXT}",
        f"xargs -n 1 {TEXT}",
        f"/opt/nvidia/nvidia_entrypoint.sh {TEXT}",
        f"/var/run/argo/argoexec emissary -- {TEXT}",
        f"/var/run/argo/argoexec emissary --loglevel info --log-format text -- {TEXT}",
        f"/argo-bin/bin/argoexec emissary --loglevel=info --log-format json --gloglevel 0 -- {TEXT}",
        f"argoexec --namespace team emissary -s https://api -- tini -- {TEXT}",
        f"python3 -u -X dev {TEXT}",
    ],
)
def test_the_program_is_found_behind_its_wrappers(words: str) -> None:
    assert line(words).starts(TEXT)
    assert not line(words).runs_through_shell


@pytest.mark.parametrize(
    "words",
    [
        "sh -c x",
        "busybox sh -c x",
        "gosu app bash -lc x",
        "argoexec emissary --loglevel info -- bash -c x",
        "fish -c x",
        "su app -c x",
        "runuser -l -c x app",
        "su app --session-command=x",
        "env -S x",
    ],
)
def test_a_shell_is_found_behind_its_wrappers(words: str) -> None:
    assert line(words).runs_through_shell


@pytest.mark.parametrize(
    "words",
    ["", "--served-model-name sh", "my-wrapper sh", "env", "timeout 5", "gosu app", "python3", "argoexec wait -n team"],
)
def test_where_none_is_found_nothing_is_started(words: str) -> None:
    assert not line(words).runs_through_shell
    assert not line(words).starts(TEXT)
