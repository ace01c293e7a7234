"""Texts that one shell reads otherwise than another, or in which a variable holds something else than it seems."""

from collections.abc import Iterator

from tests.bypass.attempt import variable
from tests.bypass.greedy import USE, Greedy, Outcome

_REST = "-memory-utilization=0.95"
_HIDDEN = f"vllm serve m --gpu${{Z}}{_REST}"
_ENV = [variable("B", "--gpu")]

# What does not set B in every shell, or not always, so that it stays what the container says.
_SETTING = (
    "declare B=x;", "typeset B=x;", "local B=x;", "builtin export B=x;", "env export B=x;", "timeout 9 export B=x;",
    "command -v export B=x;", "export -f B=x;", "readonly B;", "readonly B=x\n:;", "readonly B\nB=x;",
    "declare -r B\nB=x;",
    "unset -f B;", "time B=x;", "B+=x;", "A[B=1]=x;", "let B=1;", "test -v 'A[B=1]';", "[[ 1 -eq B=1 ]];",
    "B=x$((1/0))\n", ": $((1/0)); B=x\n", ": ${A:1/0}; B=x\n", "alias export=:\nexport B=x;", "f() B=x\n:;",
)  # fmt: skip
# Where a variable, or a word of several, may be more than one of its values.
_HOLDING = (
    "REPLY=x; read < /x; vllm serve m $REPLY",
    "MAPFILE=x; mapfile < /x; vllm serve m $MAPFILE",
    f"_=x; : --gpu; vllm serve m $_{_REST}",
    "OPTARG=x; getopts a: o; vllm serve m $OPTARG",
    "read() { :; }; read A < /x; vllm serve m $A",
    f"alias x=y\nread A < /x; vllm serve m x$A{_REST}",
    "A=1; : $[A=9]; vllm serve m --gpu-memory-utilization=0.$A",
    "A=1; X[A=9]=x; vllm serve m --gpu-memory-utilization=0.$A",
    f'C1=--gpu; C=x; N=$((1)); eval "vllm serve m \\$C$N{_REST}"',
    f'eval "$LABEL() {{ vllm serve m \\$1; }}"; echo --gpu$Z{_REST}',
    f"vllm serve m $(echo $B; uname >/dev/null){_REST}",
    "vllm serve m $(basename /x/--gpu-memory-utilization=0.95$Z)",
    f"vllm serve m `echo -n $B; nproc >&2`{_REST}",
    f"vllm serve m $(trap 'printf -- $B' EXIT; id -u >/dev/null){_REST}",
    f"vllm serve m $(f() {{ echo $B; }}; f; id -u >/dev/null){_REST}",
)
# Where one of the values that it may have makes a setting above the share.
_MAKING = (
    f"eval 'A=$'$((1))$B; vllm serve m $A{_REST}",
    f"A=$''; vllm serve m ${{A:+--gpu}}{_REST}",
    f"eval '((1)); A=--gpu'; vllm serve m ${{A:-x}}{_REST}",
    f"A=$Z--gpu; if x; then A=z; fi; vllm serve m $A{_REST}",
    f"A=$Z--gpu; trap 'A=x' EXIT; vllm serve m $A{_REST}",
    f"B='y --gpu'; f() {{ B=(x); }}; vllm serve m z$B{_REST}",
    f"if x; then A='$Q'--gpu; else A=x; fi; eval \"vllm serve m ${{A}}{_REST}\"",
    f'A="\'\'--gpu"; if x; then A=x; fi; sh -c "vllm serve m $A{_REST}"',
    f"$LABEL A=--gpu; vllm serve m $A{_REST}",
    "A=XLA_PYTHON; if x; then A=z; fi; env ${A}_CLIENT_MEM_FRACTION=0.95 python x",
    "A=XLA_PYTHON; if x; then A=z; fi; eval ${A}_CLIENT_MEM_FRACTION=0.95 python x",
    f"set -- {USE} 0.1; vllm serve m $1 0.95",
    f"f() {{ vllm serve m $1 0.95; }}; f {USE} 0.1",
    f"sh -c 'vllm serve m $0 0.95' {USE} 0.1",
    f"A=({USE} 0.1); vllm serve m $A 0.95",
)
# Where a shell runs what seems to be a word, a test, a comment or a here-document.
_HIDING = (
    f"[[ x || {_HIDDEN} ]]",
    f"[[ x\n{_HIDDEN} ]]",
    f"[[ {'x || ' * 100}{_HIDDEN} ]]",
    f"[[ -n \" ]] && echo '\" ]]; {_HIDDEN} #'",
    f"true &>/dev/null {_HIDDEN}",
    f"echo $'a\\' ; {_HIDDEN} #'",
    f'cat <<"E F" \n"\nE F\n{_HIDDEN}\nE\n',
    f"cat <<E\\ F\nE F\n{_HIDDEN}\nE\n",
    f"cat <<E\r\nE\r\n{_HIDDEN}\nE\n",
    f"true\r# ; {_HIDDEN}",
    f"for a in x # '\ndo {_HIDDEN} # '\ndone",
    f'echo "${{Z#\'"\'}}"\n{_HIDDEN}\necho }}"',
    f'echo "${{Z:-\'"\'}}"\n{_HIDDEN}\necho }}"',
    f"trap -- '{_HIDDEN}' 0",
    f". /dev/stdin <<E\n{_HIDDEN}\nE",
    f"alias g={USE}; 0.1\nalias v='vllm serve m '\nv g 0.95",
    f'command_not_found_handle() {{ shift; vllm serve m "$@"; }}; wandb --gpu${{Z}}{_REST}',
)
# Where the words of the text say it.
_SAYING = (
    f"{{ : ${{B:=0}}; }}; W=${{B[@]}}{_REST}; vllm serve m $W",
    f'set -- {USE}; 0.1; vllm serve m "$@" 0.95',
    f"true && A={USE}; 0.1; vllm serve m $A 0.95",
)
# Of others than shells that are known, which run a text all the same.
_STARTERS = (
    ["nobody", "--run"],
    ["with-contenv", "bash", "-c"],
    ["flock", "/x", "-c"],
    ["lockrun", "/x", "-c"],
    ["nsys", "profile", "sh", "-c"],
)
_HARMLESS = (
    f'ARGS=({USE} 0.2)\nif x; then ARGS+=(--tp "$TP"); fi\nexec vllm serve m "${{ARGS[@]}}"',
    f'ARGS=()\nARGS+=("--port" "8000")\nARGS+=("{USE}" "0.2")\nexec vllm serve m "${{ARGS[@]}}"',
    f'declare -a EXTRA=(--dtype auto)\nexec vllm serve m {USE} 0.2 "${{EXTRA[@]}}"',
    f"command -v nvidia-smi &>/dev/null && nvidia-smi; exec vllm serve m {USE} 0.2 &> /log",
    f"readonly DIR=/models\nexport LEVEL=INFO\nexec vllm serve $DIR/x {USE} 0.2",
    f"unset LD_LIBRARY_PATH; exec vllm serve m {USE} 0.2 --served-model-name \"${{NAME:-'m'}}\"",
    f"export OMP_NUM_THREADS=$(( $(nproc) / 2 ))\nN=1; N=$((N+1)); exec vllm serve m {USE} 0.2 --max-num-seqs $N",
    f"trap 'kill -TERM $PID' TERM INT\nvllm serve m {USE} 0.2 &\nPID=$!\nwait $PID",
    f'NAME=$(basename /models/m-1); exec vllm serve m --served-model-name "$NAME" {USE} 0.2',
    f"KV='{{\"a\": 1}}'; if x; then KV='{{}}'; fi; exec vllm serve m {USE} 0.2 --kv-transfer-config \"$KV\"",
    f"time python x.py; exec vllm serve m {USE} 0.2",
    f"vllm serve m {USE} 0.2 --tensor-parallel-size $(cd /x; nproc)",
)


def dialects() -> Iterator[Greedy]:
    """Yield them by what becomes of them."""
    yield from _texts("not set", [f"{one} vllm serve m $B{_REST}" for one in _SETTING], "limited", "denied")
    yield from _texts("one of several", _HOLDING, "warned", "denied")
    yield from _texts("one of several that is above", _MAKING, "limited", "denied")
    yield from _texts("hidden", _HIDING, "warned", "denied")
    yield from _texts("said", _SAYING, "limited", "denied")
    yield from _texts("in other words", _HARMLESS, "kept", "kept")
    composed = f"A=--gpu; vllm serve m $A{_REST}"
    for words in _STARTERS:
        yield Greedy(f"a text composed for {words[0]}", {"command": [*words, composed]}, "denied", "denied")
    yield Greedy("a text composed for an image's shell", {"args": ["-c", composed]}, "denied", "denied")


def _texts(kind: str, texts: tuple[str, ...] | list[str], under_mps: Outcome, sliced: Outcome) -> Iterator[Greedy]:
    for text in texts:
        fields = {"command": ["bash", "-c", text], "env": _ENV}
        yield Greedy(f"{kind}: {text!a}", fields, under_mps, sliced)
