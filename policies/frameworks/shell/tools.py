"""Programs that take no memory setting and start no other program: what they get is harmless."""

import re
from collections.abc import Callable, Sequence
from typing import Final

from policies.frameworks.expansion import UNREAD

_BUILT_IN = """
: [ [[ break cd continue dirs echo exit false getopts hash help history jobs kill let logout mapfile popd printf
pushd pwd read readarray return shift test times true type ulimit umask unalias wait
"""
_OF_FILES = """
awk b2sum base32 base64 basename bunzip2 bzip2 cat chgrp chmod chown cksum cmp comm cp csplit cut dd df diff dirname du
egrep expand fgrep file fmt fold gawk grep gunzip gzip head iconv install join jq link ln ls lz4 mawk md5sum mkdir
mkfifo mktemp mv nl od paste pigz pr readlink realpath rm rmdir sed seq sha1sum sha256sum sha512sum shuf sort split
stat sum sync tac tail tee touch tr truncate tsort uniq unlink unxz unzip wc xz yes yq zcat zip zstd
"""
_OF_SYSTEMS = """
addgroup adduser arch chpasswd clear date dmesg envsubst factor free getent groupadd groups hostid hostname
hostnamectl id ifconfig ip ldconfig locale logger login logname lscpu lsof lspci mknod mount mountpoint nproc numfmt
nvidia-smi openssl passwd pgrep ping pkill printenv ps pwgen sleep ss tput tty umount uname uptime useradd usermod
whoami
"""
_OF_NETWORKS = """
aws az azcopy curl dig gcloud gh git git-lfs gsutil hf host huggingface-cli mc nc netcat nslookup ollama oras rclone
s3cmd s5cmd scp sftp wandb wget
"""
_OF_PACKAGES = "apk apt apt-get conda dnf mamba micromamba pip pip3 yum"

TOOLS: Final = frozenset(
    word for words in (_BUILT_IN, _OF_FILES, _OF_SYSTEMS, _OF_NETWORKS, _OF_PACKAGES) for word in words.split()
)

# What they write cannot begin an option, and has no space: a number, or a name of the system.
_NUMBERING: Final = frozenset({"arch", "hostname", "id", "nproc", "nvidia-smi", "uname", "wc", "whoami", "pwd"})
_SILENT: Final = frozenset(
    {":", "[", "cd", "exit", "false", "mkdir", "shift", "sleep", "test", "true", "umask", "wait"}
)
# How words begin that make a tool run what another word says.
_RUNNING: Final = {
    "apt": ("-o", "--option"),
    "apt-get": ("-o", "--option"),
    "conda": ("run",),
    "git": ("!", "--config-env", "--exec-path", "--upload-pack", "alias.", "core.editor", "core.pager", "core.ssh"),
    "hash": ("-p",),
    "ip": ("exec",),
    "jobs": ("-x",),
    "mamba": ("run",),
    "mapfile": ("-C",),
    "micromamba": ("run",),
    "nc": ("-c", "-e", "--exec", "--sh-exec"),
    "netcat": ("-c", "-e", "--exec", "--sh-exec"),
    "readarray": ("-C",),
    "scp": ("-S", "-D", "-o"),
    "sftp": ("-S", "-D", "-o"),
    "sort": ("--compress",),
    "split": ("--filter",),
    "wget": ("--use-askpass", "-e", "--execute"),
    "zip": ("-T", "--unzip-command"),
}
_RUNS_IN_AWK = re.compile(r"system|(?<!\|)\|(?!\|)|(?:^|\n)[^\S\n]*@").search
_FLAGS_OF_SED: Final = "0123456789gImMp"
# The e comes first, because the engine skips to it; other letters before it make it a part of a word.
_MAY_RUN_IN_SED = re.compile(rf"e(?<![A-HJ-LN-Za-fh-ln-oq-z_-]e)([{_FLAGS_OF_SED}]*+)(?:$|[\s;}}])")
_BEFORE_FLAGS = re.compile(r"[^\w\s-]")
_BEFORE_COMMANDS: Final = ";{}/$!0123456789"
_MOST_IN_SED: Final = 256  # letters e in one script that may run something, since what stands before each is looked at


def _runs_in_sed(script: str) -> bool:
    """Whether a script of GNU's sed may have its command e, or the flag of s; or more that end so than any real one."""
    for count, match in enumerate(_MAY_RUN_IN_SED.finditer(script)):
        before = script[: match.start()]
        is_flag = _BEFORE_FLAGS.fullmatch(before.rstrip(_FLAGS_OF_SED)[-1:])
        ends_in_space = not match[1] and match[0][1:] not in (";", "}")
        if count == _MOST_IN_SED or is_flag or (ends_in_space and _begins_command(before)):
            return True
    return False


def _begins_command(before: str) -> bool:
    """Whether a command of sed may stand behind *before*."""
    bare = before.rstrip()
    return not bare or bare[-1] in _BEFORE_COMMANDS or "\n" in before[len(bare) :]


_RUNS_IN_SCRIPTS: Final[dict[str, Callable[[str], object]]] = {
    "awk": _RUNS_IN_AWK,
    "gawk": _RUNS_IN_AWK,
    "mawk": _RUNS_IN_AWK,
    "sed": _runs_in_sed,
}
_DATE = re.compile(r"-u|\+(?:%[YmdHMSsFTjyNZz]|[\w.:])(?:%[YmdHMSsFTjyNZz]|[\w.:-])*", re.ASCII)
_PATH = re.compile(r"(?!-)(?:(?!/-)[\w./:@%+=-])+", re.ASCII)  # none of its parts begins with a dash
_DIRECTORIES = frozenset({"", "/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/"})


def tool(program: str) -> str:
    """Return the name of a tool that *program* starts; "" if it may be anything else."""
    directory, slash, name = program.rpartition("/")
    return name if name in TOOLS and f"{directory}{slash}" in _DIRECTORIES else ""


def runs_another(words: Sequence[str]) -> bool:
    """Whether a tool starts the program that its own words name."""
    name = words[0].rpartition("/")[2]
    if runs := _RUNS_IN_SCRIPTS.get(name):
        return any(map(runs, words[1:]))
    begins = _RUNNING.get(name, ())
    return bool(begins) and any(one.startswith(begins) for one in words[1:])


def takes_any_word(program: str) -> bool:
    """Whether a tool that runs another gives it parts of whatever words it has, or what it reads."""
    return tool(program) in ("awk", "gawk", "mawk", "mapfile", "readarray", "sed")


def writes_nothing(words: Sequence[str]) -> bool:
    """Whether a tool writes nothing, as far as it goes where others write."""
    return words[0] in _SILENT and "-" not in words


def writes_a_value(words: Sequence[str]) -> bool:
    """Whether what a tool writes cannot begin an option and has no space."""
    operands = words[1:]
    match words[0].rpartition("/")[2]:
        case "date":
            return all(map(_DATE.fullmatch, operands))
        case "basename" | "dirname":
            return all(map(_PATH.fullmatch, operands))
        case "mktemp":
            return all(one in ("-d", "-q") for one in operands)
        case name:
            return name in _NUMBERING and not any(UNREAD in one or one.startswith("--files0") for one in operands)


def variables_set(words: Sequence[str]) -> Sequence[str]:
    """Return the names of the variables that a tool sets to what it reads or writes."""
    if words[0] in ("read", "mapfile", "readarray"):
        return [one for one in words[1:] if not one.startswith("-")]
    if words[0] == "getopts":
        return [*words[2:3], *(["OPTARG"] if len(words) > 3 else [])]  # noqa: PLR2004 - words of its own to look at
    if words[0] != "printf" or not (option := "".join(words[1:2])).startswith("-v"):
        return ()
    return [option.removeprefix("-v")] if option != "-v" else words[2:3]
