"""A variable with the share's fraction that a command line keeps from its program."""

from collections.abc import Sequence
from typing import Any

import pytest

from policies.frameworks import shell_taking
from policies.frameworks.command_line import unwrapped
from policies.grant import Denied, Grant
from tests.policies.frameworks.recorder import looked_at
from tests.policies.pods import container, decided, granted, mutated, only_container, pod, policies

JAX = "XLA_PYTHON_CLIENT_MEM_FRACTION"
IMAGE = "ghcr.io/nvidia/jax:jax-2025-01-01"
SLICED = policies("strategy: time-slicing")
TAKING = {
    f"unset {JAX}; python3 t.py": f"Remove unset {JAX}",
    f"f() {{ unset -v {JAX}; }}; f; ./t": f"Remove unset {JAX}",
    f"env -u {JAX} ./t": f"Remove env -u {JAX}",
    f"env --unset={JAX} ./t": f"Remove env -u {JAX}",
    "env -i python3 t.py": f"Write env -i {JAX}=0.2",
    "exec /usr/bin/env - A=b python3 t.py": f"Write env - {JAX}=0.2",
    "ex''ec -c python3 t.py": "Write exec without -c",
    'su - app -c "python3 t.py"': "Write su without -",
    "runuser -l app -c ./t": "Write runuser without -l",
    "if x; then sudo -u app ./start.sh; fi": f"Write sudo --preserve-env={JAX}",
    "s\\udo --preserve-env=HOME python3 t.py": f"Write sudo --preserve-env={JAX}",
    "A=sudo; $A python3 t.py": f"Write sudo --preserve-env={JAX}",
    "doas python3 t.py": f"Write doas env {JAX}=0.2",
    f"export {JAX}=0.1; exec sudo -u app python3 t.py": f"Write sudo --preserve-env={JAX}",
    f"{JAX}=0.1 python3 warmup.py; su -l app -c ./t": "Write su without -l",
    '"en"v -vi ./t': f"Write env -vi {JAX}=0.2",
    "exec -cl ./t": "Write exec without -c",
    "su -c 'python3 t.py' - app": "Write su without -",
    "su -s /bin/bash -c 'git pull; ./t' -l app": "Write su without -l",
    "sudo sh -c 'echo x > /etc/y; exec ./t'": f"Write sudo --preserve-env={JAX}",
    "sudo sh -c 'echo $(./t)'": f"Write sudo --preserve-env={JAX}",
    "sudo sh -c 'git -c core.pager=./t log'": f"Write sudo --preserve-env={JAX}",
    "sudo npm start": f"Write sudo --preserve-env={JAX}",
    "sudo corepack pnpm t": f"Write sudo --preserve-env={JAX}",
    "sudo snap run t": f"Write sudo --preserve-env={JAX}",
    "sudo python3 -m pipx run t": f"Write sudo --preserve-env={JAX}",
    "flock /l sudo ./t": f"Write sudo --preserve-env={JAX}",
    "flock -w 5 /l env -i ./t": f"Write env -i {JAX}=0.2",
    "env -S '-i ./t'": f"Write env -i {JAX}=0.2",
    f"env -S '{'A=1 ' * 40}-i ./t'": f"Write env -i {JAX}=0.2",
    """env -S '"-i" A=b ./t'""": f"Write env -i {JAX}=0.2",
    """env -S '"A=b c" -"i" ./t'""": f"Write env -i {JAX}=0.2",
    r"env -S '-\i ./t'": f"Write env -i {JAX}=0.2",
    "O=i; export O; env -S '-${O} ./t'": f"Write env -i {JAX}=0.2",
    "O=sudo; export O; env -S '${O} ./t'": f"Write sudo --preserve-env={JAX}",
    "env --ignore-e ./t": f"Write env --ignore-e {JAX}=0.2",
    f"flock /l -c 'unset {JAX}; ./t'": f"Remove unset {JAX}",
    f"script -qc 'unset {JAX}; ./t' /dev/null": f"Remove unset {JAX}",
    f"declare +x {JAX}; ./t": f"Remove declare +x {JAX}",
    f"typeset +rx {JAX}; ./t": f"Remove typeset +x {JAX}",
    "setpriv --reset-env python3 t.py": "Write setpriv without --reset-env",
    "setpriv --res python3 t.py": "Write setpriv without --res",
    "su --logi app -c ./t": "Write su without --logi",
    "su -Pl app -c ./t": "Write su without -Pl",
    "runuser --l app -c ./t": "Write runuser without --l",
    "sudo --logi <<E\n./t\nE": f"Write sudo --preserve-env={JAX}",
    "su - app <<E\n./t\nE": "Write su without -",
    'again() { n=$1; shift; until "$@"; do sleep $n; done; }; again 3 sudo ./t': f"Write sudo --preserve-env={JAX}",
    'again() { shift; "$@"; }; again 3 su - app -c ./t': "Write su without -",
    f"{JAX}=(0.1); ./t": f"Write {JAX}=0.2",
    f"export {JAX}=(0.1); ./t": f"Write {JAX}=0.2",
    f"{JAX}[0]=0.1; ./t": f"Write {JAX}=0.2",
    f"declare -a {JAX}; ./t": f"Write {JAX}=0.2",
    f"export -n {JAX}; ./t": f"Remove export -n {JAX}",
    "sudo\t./t": f"Write sudo --preserve-env={JAX}",
    "'env' -i ./t": f"Write env -i {JAX}=0.2",
    "nsys profile -o /x sudo -u app ./t": f"Write sudo --preserve-env={JAX}",
    "find . -exec env -i ./t ';'": f"Write env -i {JAX}=0.2",
    f'for v in A {JAX}; do env -u "$v" ./t; done': f"Remove env -u {JAX}",
    f'f() {{ env -u "$1" ./t; }}; f {JAX}': f"Remove env -u {JAX}",
    "exec su - app <<'E'\nmkdir x; ./t\nE": "Write su without -",
    "su - app < /x/start.sh": "Write su without -",
    "echo ./t | su - app": "Write su without -",
    "sudo -i <<E\npython3 t.py\nE": f"Write sudo --preserve-env={JAX}",
    "cat /x/start.sh | sudo -nsu app": f"Write sudo --preserve-env={JAX}",
}
UNREAD = {
    ("zsh", "cd /app;sudo -u app python3 t.py"): f"Write sudo --preserve-env={JAX}",
    ("zsh", f"unset {JAX}; python3 t.py"): f"Remove unset {JAX}",
    ("zsh", "if [[ -n $A ]]; then env -i ./t; fi"): f"Write env -i {JAX}=0.2",
    ("zsh", "a&&A=b 2>&1 >/l sudo ./t"): f"Write sudo --preserve-env={JAX}",
    ("zsh", "{ sudo ./t }"): f"Write sudo --preserve-env={JAX}",
    ("zsh", "su - app -c ./t"): "Write su without -",
    ("zsh", "su - app <<E\n./t\nE"): "Write su without -",
    ("fish", f"if true; set -e {JAX}; end; ./t"): f"Remove set -e {JAX}",
    ("fish", f"set --erase {JAX}; ./t"): f"Remove set -e {JAX}",
    ("tcsh", f"unsetenv {JAX}; ./t"): f"Remove unsetenv {JAX}",
    ("bash", ". /x\r\nsudo python3 t.py\r\n"): f"Write sudo --preserve-env={JAX}",
    ("bash", "IFS=,; sudo python3 t.py"): f"Write sudo --preserve-env={JAX}",
}
KEEPING = (
    "unset LD_LIBRARY_PATH; python3 t.py",
    "env A=b python3 t.py",
    f"env -i {JAX}=0.2 python3 t.py",
    f"sudo --preserve-env=HOME,{JAX} -u app python3 t.py",
    "sudo -E python3 t.py",
    "sudo -EHu app python3 t.py",
    "sudo sysctl -w kernel.numa_balancing=0; python3 t.py",
    f"sudo {JAX}=0.2 python3 t.py",
    "sudo apt-get update && sudo mkdir /x; python3 t.py",
    "sudo service ssh start; python3 t.py",
    "sudo sh -c 'echo x > /etc/y'; python3 t.py",
    "sudo -u app -- bash -lc 'cd /x && exec git pull'; python3 t.py",
    "su - app -c 'mkdir -p x && git clone y'; python3 t.py",
    "su -c 'git pull' - app; python3 t.py",
    "sudo python3 -m pip install x; sudo /opt/conda/bin/conda install x; sudo ssh-keygen -A; python3 t.py",
    "sudo setcap cap_net_bind_service=+ep /usr/bin/caddy; sudo chsh -s /bin/bash app; sudo killall x; python3 t.py",
    "sudo npm install -g x; sudo npm ci; sudo corepack enable; sudo snap install x; sudo uv pip install x; ./t",
    "sudo mount-s3 b /x; sudo tailscaled & sudo tailscale up; sudo dockerd & sudo sh -c 'setcap x y'; ./t",
    "sudo pg_isready; sudo psql -c x; sudo /opt/venv/bin/python -m pip install x; ./t",
    "su app -c 'python3 t.py'",
    "su app <<E\npython3 t.py\nE",
    "su - app <<E\nmkdir -p x\nE\npython3 t.py",
    "sudo -Es <<E\n./t\nE",
    "sudo -v; ./t",
    "runuser -u app -- python3 t.py",
    "env -S './whisper -i a.wav'",
    f"env -S '{'A=1 ' * 40}./whisper -i a.wav'",
    """env -S '"A=b c" "./t" -i'""",
    "env -S '${HOME}/bin/t -i'",
    "flock /l ./t -i",
    "x install -y sudo vim; ./t",
    "dpkg -l sudo vim; ./t",
    "set -e; export -n HTTPS_PROXY; ./t",
    "env --ignore-signal ./t",
    "env --ignore-s=PIPE ./t",
    r"env -S './t --color #fff \c'",
    "setpriv --reuid 1 --regid 1 ./t",
    "A=(a b); declare -A B; ./t",
    "python3 t.py --groups wheel sudo docker",
    "kubectl exec -c main pod -- x; ./t",
    "python3 -m venv env; ./t",
    "log() { echo $*; }; log do not sudo here; ./t",
    "su - postgres -c 'pg_ctl start'; ./t",
)
UNREAD_KEEPING = (
    ("zsh", "sudo apt-get update;sudo mkdir x; ls | xargs rm; python3 t.py"),
    ("zsh", "unset LD_LIBRARY_PATH; ./t"),
    ("zsh", "echo 'no sudo here'; ./t"),
    ("zsh", "sudo -E ./t"),
    ("zsh", "A=/usr/bin/sudo\n./t"),
    ("fish", "set -e PATH[1]; ./t"),
    ("bash", "set -e\r\nsudo mkdir x\r\n./t\r\n"),
)


def started_by(text: str, **fields: Any) -> dict[str, Any]:
    return pod("0.2", container(**{"image": IMAGE, "command": ["bash", "-c", text]} | fields))


@pytest.mark.parametrize("text", TAKING)
def test_it_is_denied_under_time_slicing_with_what_to_write(text: str) -> None:
    decision = decided(started_by(text), SLICED)
    assert isinstance(decision, Denied)
    assert decision.deny.code == "MemoryArgumentAboveShare"
    assert JAX in decision.deny.message
    assert decision.deny.message.endswith(f"{TAKING[text]}.")


@pytest.mark.parametrize("text", TAKING)
def test_it_is_a_warning_under_mps(text: str) -> None:
    assert any(f"without {JAX}" in one for one in granted(started_by(text)).warnings)


@pytest.mark.parametrize("text", KEEPING)
def test_what_reaches_the_program_or_no_framework_is_granted(text: str) -> None:
    assert isinstance(decided(started_by(text), SLICED), Grant)
    assert not granted(started_by(text)).warnings


@pytest.mark.parametrize(("shell", "text"), UNREAD)
def test_a_text_that_is_not_read_is_judged_by_its_words(shell: str, text: str) -> None:
    on = started_by("", command=[shell, "-c", text])
    decision = decided(on, SLICED)
    assert isinstance(decision, Denied)
    assert decision.deny.message.endswith(f"{UNREAD[shell, text]}.")
    assert any(f"without {JAX}" in one for one in granted(on).warnings)


@pytest.mark.parametrize(("shell", "text"), UNREAD_KEEPING)
def test_such_a_text_that_takes_nothing_from_a_framework_is_granted(shell: str, text: str) -> None:
    assert isinstance(decided(started_by("", command=[shell, "-c", text]), SLICED), Grant)


@pytest.mark.parametrize(
    "words",
    [
        ["sudo", "./t"],
        ["/entrypoint.sh", "sudo", "./t"],
        ["/usr/bin/env", "-i", "./t"],
        ["su", "-", "app", "-c", "./t"],
        ["su", "--logi", "app", "-c", "./t"],
        ["setpriv", "--reset-e", "./t"],
        ["env", "-S", r"-i\c", "./t"],
        ["env", "-S", "--unset #", JAX, "./t"],
    ],
)
def test_a_command_without_a_shell_is_judged_too(words: list[str]) -> None:
    assert isinstance(decided(started_by("", command=words), SLICED), Denied)


def test_a_variable_of_the_users_is_one_that_is_taken() -> None:
    env = [{"name": JAX, "value": "0.1"}]
    assert isinstance(decided(started_by("env -i ./t", image="python:3", env=env), SLICED), Denied)


@pytest.mark.parametrize("text", TAKING)
def test_where_no_variable_is_handed_over_nothing_is_taken(text: str) -> None:
    assert isinstance(decided(started_by(text, image="python:3"), SLICED), Grant)


def test_a_whole_gpu_has_nothing_to_lose() -> None:
    whole = pod("1", container(image=IMAGE, command=["env", "-i", "./t"], env=[{"name": JAX, "value": "0.5"}]))
    assert isinstance(decided(whole, SLICED), Grant)


@pytest.mark.parametrize("text", [f"{JAX}=0.1; python3 t.py", f"echo {JAX}=0.1; python3 t.py"])
def test_what_a_text_sets_does_not_keep_the_grant_from_setting_it(text: str) -> None:
    added = only_container(mutated(started_by(text), SLICED))["env"]
    assert {"name": JAX, "value": "0.2"} in added


@pytest.mark.parametrize(("text", "most"), [("- " * 400 + "-i ./t", 403), ("- " * 40_000, 33), ("./t " * 40_000, 33)])
def test_words_that_env_splits_are_looked_through_as_far_as_texts_are_read(
    text: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_through: list[int] = []

    def counted(words: Sequence[str]) -> tuple[int, bool]:
        looked_through.append(len(words))
        return unwrapped(words)

    monkeypatch.setattr(shell_taking, "unwrapped", counted)
    looked_at(["env", "-S", text])
    assert max(looked_through) == most


@pytest.mark.parametrize("words", [f"--uns {JAX} ./t", "${O} ./t", "-${O} ./t", "-S '-i ./t'", r"-\c x", "--unset #x"])
def test_an_option_that_env_makes_up_where_it_splits_words_is_denied(words: str) -> None:
    unread = {"name": "O", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}
    on = pod("0.2", container(image=IMAGE, command=["env", "-S", words], env=[unread]))
    assert isinstance(decided(on, SLICED), Denied)
