"""Words of tools that run no other program are known, and all others may."""

import pytest

from policies.frameworks.shell.tools import runs_another


@pytest.mark.parametrize(
    "script",
    [
        "s/a/b/", "s|@TOKEN@|e$e|g", "s,a\\,e,b,2p", "/re/d", "1,$p", "1,/e/!d", "$=", "10q",
        "s/e/f/g; s/x/\\/e/; /e/p",
        "p",
    ],
)  # fmt: skip
def test_a_script_of_sed_that_runs_no_program_is_known(script: str) -> None:
    assert not runs_another(["sed", script])
    assert not runs_another(["sed", "-i", "-e", script, "/home/e", "-e", script])
    assert not runs_another(["sed", script, "/home/e"])


@pytest.mark.parametrize(
    "script",
    [
        "e", "1e ls", "1els", "$!e ls", "/a/e ls", "s/a/b/e", "s/a/b/ge", "s/a/b/we", "sxaxbxe", "s\\a\\b\\e",
        "s/a/b\ne ls/", "/a/els", "-e1els", "-ne1els", "--expression=e ls",
        "s/a/b/;e ls", "{e ls\n}", "p;p;1 e", "y/a/e/;e ls", "s/a/b/\ne ls",
    ],
)  # fmt: skip
def test_a_script_of_sed_that_may_run_a_program_is_seen(script: str) -> None:
    assert runs_another(["sed", script])


def test_a_long_script_of_sed_costs_what_its_length_does() -> None:
    assert runs_another(["sed", f"{'s/e/f/;' * 20_000}e ls"])
    assert runs_another(["sed", f"s/{'e' * 100_000}"])
    assert not runs_another(["sed", "s/e/f/;" * 20_000])


@pytest.mark.parametrize("words", ["-r", "-d vllm", "-t vllm", "-lr", "vllm"])
def test_hash_that_forgets_or_finds_programs_makes_none_another(words: str) -> None:
    assert not runs_another(["hash", *words.split()])


@pytest.mark.parametrize(
    "words", ["-p /x curl", "-rp /x curl", "-lp/x curl", "-r -p /x curl", "curl=/x", "-\0\2 /x curl"]
)
def test_hash_that_makes_a_program_another_is_seen(words: str) -> None:
    assert runs_another(["hash", *words.split()])


@pytest.mark.parametrize(
    "words",
    [
        "rclone lsd --password-command cmd x:", "rclone lsd --sftp-ssh=cmd :sftp:", "rclone lsd :sftp,ssh=cmd:/x",
        "rclone config create x webdav bearer_token_command cmd", "rclone -v config create x sftp ssh cmd",
        "zip --unzip-c cmd x", "wget --use-ask=cmd x",
        "wget --exec use_askpass=cmd x", "nc --sh-ex cmd -l 9", "nc --exe cmd -l 9", "sort --compr cmd x",
        "ip netns exe x cmd", "mc find /m -exec cmd", "wandb launch --entry-point cmd", "gh extension exec cmd",
        "yq --security-enable-system-operator cmd", "gh alias set x cmd",
        "gcloud compute ssh x --ssh-flag=-oProxyCommand=cmd", "aws configure set profile.a.credential_process cmd",
        "git-lfs clone -u cmd x", "install -s --strip-pro=cmd a b", "apt-get install -Vyo DPkg::Pre-Invoke::=cmd",
        "sftp -NS cmd h", "sftp -aS cmd h", "scp -4OS cmd a b", "wget -q4e use_askpass=cmd x", "nc -Ue cmd s",
    ],
)  # fmt: skip
def test_an_option_that_runs_a_command_is_seen_abbreviated_as_well(words: str) -> None:
    assert runs_another(words.split())


@pytest.mark.parametrize(
    "words",
    [
        "rclone copy r:/.ssh /x --transfers 8", "rclone sync :s3,provider=AWS,env_auth=true:b /x",
        "rclone copy r:x ssh",
        "wget --user x --user-agent y u",
        "mc cp --exclude x a b", "wandb login x", "gh release download v1", "gh --version",
        "gh repo clone a/b c -- --depth 1", "gh config set -h x y z", "git-lfs pull", "aws s3 cp a b",
        "gcloud storage cp gs://a local", "apt-get install -yq x", "sftp -P22 h", "wget -Omodel.bin x",
        "nc -uzvw1 h 80",
        "zip -r --exclude y x", "nc -z -w 1 h 80", "sort --key=1 --check x", "ip addr show eth0",
    ],
)  # fmt: skip
def test_other_options_of_these_tools_run_nothing(words: str) -> None:
    assert not runs_another(words.split())
