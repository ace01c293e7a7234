"""Programs that take no memory setting and start no other program: what they get is harmless."""

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from policies.frameworks.shell.git import runs_in_git

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
addgroup adduser arch chpasswd clear date dmesg envsubst factor free getconf getent groupadd groups hostid hostname
hostnamectl id ifconfig ip ldconfig locale logger login logname lscpu lsof lspci mknod mount mountpoint nproc numfmt
nvidia-smi openssl passwd pgrep ping pkill printenv ps pwgen sleep ss tput tty umount uname uptime useradd usermod
uuidgen which whoami
"""
_OF_NETWORKS = """
aws az azcopy curl dig gcloud gh git git-lfs gsutil hf host huggingface-cli mc nc netcat nslookup ollama oras rclone
s3cmd s5cmd scp sftp wandb wget
"""
_OF_PACKAGES = "apk apt apt-get conda dnf mamba micromamba pip pip3 yum zypper"
_OF_SERVICES = """
blobfuse2 chsh fusermount fusermount3 gcsfuse getcap killall mount-s3 pg_isready redis-cli s3fs setcap ssh-keygen
ssh-keyscan sysctl tailscale
"""

_ALL = (_BUILT_IN, _OF_FILES, _OF_SYSTEMS, _OF_NETWORKS, _OF_PACKAGES, _OF_SERVICES)
TOOLS: Final = frozenset(word for words in _ALL for word in words.split())

_SILENT: Final = frozenset(
    {":", "[", "cd", "exit", "false", "mkdir", "shift", "sleep", "test", "true", "umask", "wait"}
)
_MUTE: Final = frozenset({":", "[", "exit", "false", "nc", "netcat", "shift", "sleep", "test", "true", "wait"})
_SEEKING: Final = frozenset({"egrep", "fgrep", "grep"})
_PART_OF_SED: Final = r"(?:(?>(?!\1)[^\\\n]|\\.))*+"  # up to the sign that the first group found
_REPLACING = re.compile(rf"s([^\w\s\\;]){_PART_OF_SED}\1({_PART_OF_SED})\1[gIp0-9]*")
# How words begin that make a tool run what another word says, with options as far as they may be abbreviated.
_RUNNING: Final = {
    "apt": ("-o", "--option"),
    "apt-get": ("-o", "--option"),
    "conda": ("run",),
    "install": ("--strip-",),
    "jobs": ("-x",),
    "mamba": ("run",),
    "mapfile": ("-C",),
    "mc": ("-exec", "--exec"),
    "micromamba": ("run",),
    "nc": ("-c", "-e", "--e", "--lua", "--sh"),
    "netcat": ("-c", "-e", "--e", "--lua", "--sh"),
    "readarray": ("-C",),
    "scp": ("-S", "-D", "-o"),
    "sftp": ("-S", "-D", "-o"),
    "sort": ("--co",),
    "split": ("--f",),
    "ssh-keygen": ("-D", "-w"),
    "tailscale": ("ssh",),
    "wandb": ("docker", "launch"),
    "wget": ("--use-a", "-e", "--exe"),
    "yq": ("--security-enable-system",),
    "zip": ("-T", "--unz"),
}
_OF_RCLONE: Final = "auth-proxy|metadata-mapper|password-command|sftp-ssh|webdav-bearer-token-command"
_SET_IN_RCLONE: Final = "bearer_token_command|metadata_mapper|password_command|ssh"
_RUNS_IN_RCLONE = re.compile(rf"--(?:{_OF_RCLONE})|(?s:.*,)?(?:global\.)?(?:{_SET_IN_RCLONE})(?:=|(\Z))")
_SUBCOMMAND_OF_RCLONE = re.compile(r"(?!config\Z)[a-z]+")  # in which a setting has its value in the same word
# The same options behind others, but those that take a value, as in `mapfile -tC`, and words of another form.
_RUNNING_IN_CLUSTER: Final = {
    name: re.compile(pattern)
    for names, pattern in (
        ("hash", r"-(?![dlrt]+\Z)|[^=]*="),  # bash sets by -p, zsh and ksh by NAME=path
        ("ip", r"e(?:x(?:ec?)?)?\Z"),
        ("aws", r"(?s:.*)credential_process"),
        ("gcloud", r"s(?:cp|sh)\Z"),
        ("hf", r"ext(?:ensions)?\Z"),
        ("mapfile readarray", "-t+C"),
        ("nc netcat", "-[^-gGiImMoOpPqsTVwWxX]+[ce]"),
        ("apt apt-get", "-[^-catP]+o"),
        ("wget", "-[^-aABDiIlOPQRtTUwX]+e"),
        ("scp", "-[^-cFiJlPX]+[SDo]"),
        ("sftp", "-[^-bBcFiJlPRsX]+[SDo]"),
        ("zip", "-[^-binOPstx]+T"),
    )
    for name in names.split()
}
_RUNNING_OF_GH: Final = frozenset({"alias", "codespace", "cs", "ext", "extension", "extensions"})
_RUNS_IN_AWK = re.compile(r"system|(?<!\|)\|(?!\|)|(?:^|\n)[^\S\n]*@").search
_SCRIPT_OF_SED = re.compile(r"-[nrEszu]*e|--expression=?")
_OPTION_OF_SED = re.compile(
    r"-[nrEszu]+|-[nrEszu]*(?:e|i)[^\n]*|--(?:expression=|quiet|in-place|regexp-extended)[^\n]*"
)
_ADDRESS_OF_SED: Final = r"(?:[0-9$]+|/[^/\n]*/)?(?:,(?:[0-9$]+|/[^/\n]*/))?[ \t]*!?"
# Of all that a script may have, what people write: p, d, q, =, and s with a sign that is no letter, and without e.
_OF_SED = re.compile(
    rf"[\s;]*+(?:(?>{_ADDRESS_OF_SED}(?:[pdq=]|s([^\w\s\\;]){_PART_OF_SED}\1{_PART_OF_SED}\1[gIp0-9]*)[\s;]*))++"
)


def _runs_in_sed(operands: Sequence[str]) -> bool:
    """Whether a script of GNU's sed may have its command e, or the flag of s."""
    options = [one for one in operands if one.startswith("-")]
    if not all(map(_OPTION_OF_SED.fullmatch, options)):
        return True
    scripts = [_SCRIPT_OF_SED.sub("", one, count=1) for one in options if _SCRIPT_OF_SED.match(one)]
    if scripts:
        scripts += [behind for one, behind in pairwise(operands) if _SCRIPT_OF_SED.fullmatch(one)]
    else:
        scripts = [one for one in operands if not one.startswith("-")][:1]
    return any("e" in one and not _OF_SED.fullmatch(one) for one in scripts)


def _runs_in_awk(operands: Sequence[str]) -> bool:
    return any(one.startswith(("-f", "--f", "-i", "--i", "-l", "--l")) or _RUNS_IN_AWK(one) for one in operands)


def _runs_in_rclone(operands: Sequence[str]) -> bool:
    is_joined = any(map(_SUBCOMMAND_OF_RCLONE.fullmatch, operands[:1]))
    found = filter(None, map(_RUNS_IN_RCLONE.match, operands))
    return any(one[1] is None or not is_joined for one in found)


def _runs_in_gh(operands: Sequence[str]) -> bool:
    """Whether gh may start an extension, or what an alias says, which may stand behind an option's value."""
    return any(one in _RUNNING_OF_GH for one in operands[:2])


_RUNS_IN_SCRIPTS: Final[dict[str, Callable[[Sequence[str]], bool]]] = {
    "awk": _runs_in_awk,
    "gawk": _runs_in_awk,
    "mawk": _runs_in_awk,
    "gh": _runs_in_gh,
    "git": runs_in_git,
    "git-lfs": lambda operands: runs_in_git(["lfs", *operands]),
    "rclone": _runs_in_rclone,
    "sed": _runs_in_sed,
}
BY_PLACE: Final = frozenset({"gh", "git", "git-lfs", "rclone", "sed"})  # of a word says what it is
_HOOKS: Final = frozenset({("conda", "shell.bash"), ("micromamba", "shell"), ("mamba", "shell")})
_PYTHON = re.compile(r"python[0-9.]*")
_DIRECTORIES = frozenset({"", "/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/"})


def is_python(program: str) -> bool:
    """Whether a program, without its directory, runs Python."""
    return _PYTHON.fullmatch(program) is not None


def tool(program: str) -> str:
    """Return the name of a tool that *program* starts; "" if it may be anything else."""
    name = program.rpartition("/")[2]
    return name if name in TOOLS and is_in_usual_place(program) else ""


def is_in_usual_place(program: str) -> bool:
    """Whether a program stands where systems keep theirs, so that its name says what it is."""
    directory, slash, _ = program.rpartition("/")
    return f"{directory}{slash}" in _DIRECTORIES


def runs_another(words: Sequence[str]) -> bool:
    """Whether a tool starts the program that its own words name."""
    name = words[0].rpartition("/")[2] if words else ""
    if runs := _RUNS_IN_SCRIPTS.get(name):
        return runs(words[1:])
    begins, cluster = _RUNNING.get(name, ()), _RUNNING_IN_CLUSTER.get(name)
    if cluster and any(map(cluster.match, words[1:])):
        return True
    return bool(begins) and any(one.startswith(begins) or one.lower().startswith(begins) for one in words[1:])


def takes_any_word(program: str) -> bool:
    """Whether a tool that runs another gives it parts of whatever words it has, or what it reads."""
    return tool(program) in ("awk", "gawk", "mawk", "mapfile", "readarray", "sed")


def writes_no_word(name: str, words: Sequence[str]) -> bool:
    """Whether nothing that a tool writes has its own words in it, but in what it says of errors."""
    return name in _MUTE or (name in _SEEKING and not any(one.startswith("--l") for one in words))  # --label


def without_pattern(name: str, word: str) -> str:
    """Leave out of a script of sed what it looks for, and keep what it writes."""
    replacing = _REPLACING.fullmatch(word) if name == "sed" else None
    return replacing[2] if replacing else word


def writes_nothing(words: Sequence[str]) -> bool:
    """Whether a tool writes nothing, as far as it goes where others write."""
    if words[2:3] == ["hook"]:  # a function for `activate`, which a shell is to run
        return (words[0], words[1]) in _HOOKS
    return words[0] in _SILENT and "-" not in words
