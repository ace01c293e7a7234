"""What git runs of its words and variables is read as a text, and nothing else that it gets."""

import pytest

from policies.frameworks.expansion import ANYTHING
from policies.frameworks.shell.git import runs_in_git
from policies.grant import Grant
from tests.policies.pods import container, denied, granted, pod, policies

SLICED = policies("strategy: time-slicing")
UNREAD = {"name": "X", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}


@pytest.mark.parametrize(
    "words",
    [
        "clone -u cmd /x", "clone -qu cmd /x", "clone -ucmd /x", "clone --upload-p cmd /x", "fetch --up=cmd /x",
        "push --receive-p=cmd", "ls-remote --exe=cmd /x", "archive --remote=. --exec=cmd HEAD", "--exec-path=/x log",
        "-c tar.x.command=cmd archive", "-c trailer.a.cmd=cmd log", "-c credential.helper=cmd fetch",
        "-c CORE.pager=x log",
        "-c user.name=x -c core.fsmonitor=cmd status",
        "clone -ccore.fsmonitor=cmd /x", "clone --conf=core.pager=x /x",
        "config core.pager cmd", "config --global alias.x !cmd", "config -f user.cfg core.pager cmd",
        "config credential.https://x.helper cmd", "-c protocol.ext.allow=always fetch", "fetch ext::cmd",
        "-c url.ext::cmd.insteadOf=x fetch x", "-c lfs.customtransfer.x.path=cmd lfs pull",
        "bisect run cmd", "rebase -x cmd", "filter-branch cmd",
        "-C config config core.pager cmd", "-p -c core.pager=x log",
        "config --type path core.pager cmd", "config --fil user.x core.pager cmd", "config --fixed core.pager cmd",
        "config set --global core.pager cmd", "config -f get core.pager cmd", "config --default list core.pager cmd",
        "config credential.https://x.username=y.helper cmd",
        "clone -qc core.pager=x /x", "clone -q --conf core.pager=x /x", "lfs clone -c core.pager=x /x",
        f"{ANYTHING} core.pager {ANYTHING}", f"-c {ANYTHING} log", f"-C {ANYTHING} . config core.pager cmd",
        f"-c core{ANYTHING}=true log",
    ],
)  # fmt: skip
def test_words_by_which_git_runs_a_command_are_seen(words: str) -> None:
    assert runs_in_git(words.split())


@pytest.mark.parametrize(
    "words",
    [
        'clone -b v1.2 "https://oauth2:$X@git.example/x" /s',
        'clone -c http.sslVerify=false "https://$X@git.example/x"',
        '-c http.extraHeader="Authorization: Bearer $X" clone https://git.example/x',
        'config --global url."https://oauth2:$X@github.com/".insteadOf "https://github.com/"', 'config user.email "$X"',
        'config --global --add safe.directory "$X"', 'config core.compression "$X"', 'switch -c "$X"', 'add -u "$X"',
        '-c user.name="$X" -c user.email=a@b.example commit -m "$X"',
        '-c protocol.version=2 fetch --depth 1 origin "$X"',
        'commit -m "$X (run=1)"', 'notes add -m "$X acc=0.9"', 'clone "$X?depth=1" /s', 'add config app.yaml "$X"',
        'push -o "ci.variable=A=b" "$X"', '-C "$X/seed=1" add config main.py', 'clone "$X" config', 'clean -x "$X"',
        'checkout "$X" -- hooks rebase grep.py', '-c credential.helper= fetch "$X"', '-c core.fsmonitor fetch "$X"',
        '-c core.fsmonitor=false fetch "$X"', '-c gc.autodetach=off -c merge.renames=1 pull "$X"',
        'clone -chttp.sslVerify=false "$X"', 'config remote.origin.url "$X"', 'config user.name "J. Doe $X"',
        'config lfs.storage "$X"', 'config --get "$X"', 'config get "$X"', '-c credential.helper=cache clone "$X"',
        '-c protocol.file.allow=always clone "$X"', 'clone "$X" "/data/My Models"', 'lfs clone "$X" "/a b"',
        '${X:+-c http.extraHeader="Authorization: Bearer $X"} clone "$X"', '${X:+-C "$X"} pull',
        'clone -b "$X" -chttp.extraHeader="Authorization: Bearer $X" "$X" /s',
        '-c lfs.concurrenttransfers=8 lfs pull --include "$X"', 'remote set-url origin "https://$X@git.example/x"',
    ],
)  # fmt: skip
def test_what_git_gets_that_runs_nothing_may_be_unread(words: str) -> None:
    line = ["bash", "-c", f"git {words}; exec vllm serve m --gpu-memory-utilization 0.1"]
    assert granted(pod("0.2", container(command=line, env=[UNREAD])), SLICED).warnings == ()


@pytest.mark.parametrize(
    "script",
    [
        "export GIT_SHA=$(git rev-parse HEAD); python main.py",
        'GIT_COMMIT=$(git rev-parse HEAD); python main.py --sha="$GIT_COMMIT"',
        'GIT_ROOT=$(git rev-parse --show-toplevel); cd "$GIT_ROOT"; python t.py',
        'GIT_TOKEN="$(cat /s/t)"; git clone "https://oauth2:${GIT_TOKEN}@x/y" /s && python t.py',
        "export GIT_HASH=$(git -C /app rev-parse HEAD 2>/dev/null || echo unknown); exec vllm serve m --port 8000",
    ],
)
def test_a_variable_that_only_has_a_name_like_those_of_git_is_none_that_it_runs(script: str) -> None:
    assert isinstance(granted(pod("0.2", container(command=["bash", "-c", script])), SLICED), Grant)


@pytest.mark.parametrize(
    "name",
    ["GIT_SSH_COMMAND", "GIT_EDITOR", "GIT_PAGER", "GIT_CONFIG_VALUE_0", "GIT_ASKPASS", "SSH_ASKPASS", "GH_PAGER"],
)
def test_a_variable_that_git_or_gh_runs_is_read_as_a_text(name: str) -> None:
    script = f'export {name}="vllm serve m $(echo --gpu)-memory-utilization=0.95"; git fetch; python t.py'
    assert denied(pod("0.2", container(command=["bash", "-c", script])), SLICED).code == "MemoryArgumentAboveShare"
