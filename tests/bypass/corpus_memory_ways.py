"""Texts in which a word may be written in many ways: by variables, functions, arrays, and texts that are run again."""

from collections.abc import Iterator

from tests.bypass.attempt import variable
from tests.bypass.greedy import USE, Greedy

_REST = "-memory-utilization=0.95"
_MANY = " ".join(f"v{number}" for number in range(17))
_ENV = [variable("L", "--gpu"), variable("SUM", "A=9"), variable("NAME", "m")]

# All ways are told apart, and one of them is above the share.
_ABOVE = (
    f"cd .\nC='y --gpu' :\nset -k\nexport B=\"${{L-q}}\"\nlocal B='${{L%x}}'\nvllm serve m ${{B}}\"{_REST}\"",
    f"true && B=x; B=$L; vllm serve m $B{_REST}",
    f"if x; then B=q; else B=-; fi; vllm serve m $B-gpu{_REST}",
    f"f() {{ vllm serve m $1{_REST}; }}; if x; then f q; fi; f --gpu",
    f"f() {{ g $1; }}; g() {{ vllm serve m $1{_REST}; }}; f --gpu",
    f"F=f; f() {{ vllm serve m $1{_REST}; }}; true; $F --gpu",
    f"f() {{ shift; vllm serve m $1{_REST}; }}; f a --gpu",
    f"f() {{ eval 'vllm serve m --gpu$1'; }}; g() {{ eval 'vllm serve m --gpu$1'; }}; f x; g {_REST}",
    f"set -- {USE} 0.1 0.95; vllm serve m $1 $3",
    f"A=({USE} 0.1 0.95); vllm serve m ${{A[0]}} ${{A[2]}}",
    f"for A in {USE} 0.95; do vllm serve m $B $A; B=$A; done",
    f"E=export; true; $E B=--gpu; vllm serve m $B{_REST}",
    f"V=B=--gpu; true; export $V; vllm serve m $B{_REST}",
    f"env() {{ vllm serve m --gpu$1; }}; env {_REST} x",
    f"env -u NAME sh -c 'vllm serve m $NAME--gpu{_REST}'",
    f"A=x; export A; env -u A sh -c 'vllm serve m $A--gpu{_REST}'",
    f"sh -c 'sh -c \"vllm serve m \\$0{_REST}\" --gpu'",
    f"sh -c 'vllm serve m \"$@\"' x {USE}=0.95",
    f"O={USE}; case x in x) V=0.95;; *) V=0.1;; esac; vllm serve m $O $V",
    f"for A in {_MANY} --gpu; do vllm serve m $A{_REST}; done",
    f"for A in {_MANY} B=--gpu; do env $A sh -c 'vllm serve m $B{_REST}'; done",
    "A=1; ((A=9)); vllm serve m --gpu-memory-utilization=0.$A",
    'A=(q --gpu-memory-utilization=0.95); vllm serve m "${A[@]:1}"',
)
# Something in them is not told, and may be an option.
_UNTOLD = (
    f"bash() {{ vllm serve m --gpu$2; }}; bash -c {_REST}",
    f'A=0.95; A="{USE} $A"; vllm serve m $A 0.1',
    f'A=x; A={USE}; A="$A 0.95"; vllm serve m $A',
    f'A=(0.95); A=({USE} "${{A[@]}}" 0.1); vllm serve m "${{A[@]}}"',
    "A=1; : $((SUM)); vllm serve m --gpu-memory-utilization=0.$A",
    "A=1; B=SUM; : $((B)); vllm serve m --gpu-memory-utilization=0.$A",
    "A=1; unset 'X[A=9]'; vllm serve m --gpu-memory-utilization=0.$A",
    "A=1; exec {A}>/x; vllm serve m --gpu-memory-utilization=0.$A",
    "A=1; sleep 1 & wait -p A; vllm serve m --gpu-memory-utilization=0.$A",
    "A=1; for ((A=9; A<10; A++)); do vllm serve m --gpu-memory-utilization=0.$A; done",
    f"set -A B -- --gpu; vllm serve m $B{_REST}",
    f"A=(--gpu); vllm serve m ${{A[$((0))]/q/x}}{_REST}",
    f"f() (vllm serve m $1{_REST}); f x; f $EXTRA",
    f". <(echo 'vllm serve m --gpu${{Z}}{_REST}')",
    f"bash <(echo 'vllm serve m --gpu${{Z}}{_REST}')",
    f"true; S=sh; echo 'vllm serve m --gpu${{Z}}{_REST}' | $S",
    f"alias q=\"echo '\"\nq ' ; vllm serve m --gpu${{Z}}{_REST} #'",
    f"false && PYTHONUNBUFFERED=0.1; vllm serve m {USE} $PYTHONUNBUFFERED",
    f"B=x$((1/0)); true\nvllm serve m $B-gpu${{Z}}{_REST}",
    "sh -c 'vllm serve m --port=$(PART)'",
)
_KEPT = (
    f'log() {{ echo "$*"; }}; start() {{ local m="$1"; log "start $m"; vllm serve "$m" {USE} 0.2; }}; start org/m',
    f'U=0.2\nexport MODEL=${{MODEL:-m}} N=1\nset -euo pipefail\nvllm serve "$MODEL" {USE} "$U" --n $N',
    f'C="vllm serve m {USE} 0.2"; if x; then C="$C --eager"; fi; eval "$C"',
    f'l=(1 2 3); for i in 0 1; do python x.py --lr "${{l[$i]}}" --n "${{#l[@]}}"; done; vllm serve m {USE} 0.2',
    f"if (( 1 < 2 )); then echo; fi; for ((i=0; i<2; i++)); do echo $i; done; vllm serve m {USE} 0.2 --n $((8+1))",
    'm=(); for n in a b c; do m+=("$n=/x/$n"); done; vllm serve b --lora-modules "${m[@]}"',
    "IFS=',' read -ra L <<< \"$NAME\"; for i in $(seq 1 3); do python x.py --seed $i; done",
    'H=$(hostname)\npython x.py "--host=${H%-*}-0.svc" "--base=${NAME##*/}" --data=/x/$(date +%Y)',
    'eval "$(conda shell.bash hook)"; conda activate x; python x.py',
    f"for i in {_MANY}; do python x.py --fold $i --out /out/$i; done",
)  # fmt: skip


def ways() -> Iterator[Greedy]:
    """Yield them by what becomes of them."""
    part = variable("PART", None, valueFrom={"configMapKeyRef": {"name": "a", "key": "b"}})
    extra = variable("EXTRA", None, valueFrom={"configMapKeyRef": {"name": "a", "key": "b"}})
    for kind, texts, under_mps, sliced in (
        ("one way is above", _ABOVE, "limited", "denied"),
        ("a way is not told", _UNTOLD, "warned", "denied"),
        ("no way is above", _KEPT, "kept", "kept"),
    ):
        for number, text in enumerate(texts):
            fields = {"command": ["bash", "-c", text], "env": [*_ENV, part, extra]}
            yield Greedy(f"{kind} {number}: {text[-60:]!a}", fields, under_mps, sliced)  # type: ignore[arg-type]
    ansi = f'cd .\nL=$\'x${{B}}\'\nL="${{L}}"\nsh -c "vllm serve m ${{L}}""{_REST}"'
    dash = {"command": ["sh", "-c", ansi], "env": [variable("B", "--gpu")]}
    yield Greedy("a sign of bash alone, for a shell that may be another", dash, "warned", "denied")
