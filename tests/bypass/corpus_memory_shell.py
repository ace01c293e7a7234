"""Texts for a shell in which something cannot be read: where it may reach a framework, and where it cannot."""

from collections.abc import Iterator

from tests.bypass.attempt import variable
from tests.bypass.greedy import CONFIG_MAP, JAX, SECRET, USE, Greedy, Outcome

UNREAD = [variable("EXTRA", None, **CONFIG_MAP), variable("TOKEN", None, **SECRET), variable("PORT", "8000")]
SERVE = f"vllm serve m {USE} 0.2"

# May reach a framework, or a program that may be one.
REACHING = (
    "vllm serve m $EXTRA",
    'vllm serve m "$EXTRA"',
    "vllm serve m --port=$EXTRA",
    "vllm serve m --port $EXTRA",
    "vllm serve m -- $EXTRA",
    "exec $EXTRA",
    "./start.sh $EXTRA",
    "python train.py --data $EXTRA",
    "A=$EXTRA; vllm serve m $A",
    "A=$EXTRA; B=x$A; vllm serve m $B",
    "while :; do vllm serve m $A; A=$EXTRA; done",
    "run() { vllm serve m $A; }; A=$EXTRA; run",
    'eval "vllm serve m $EXTRA"',
    "eval 'vllm serve m $EXTRA'",
    'sh -c "vllm serve m $EXTRA"',
    "bash -c 'sh -c \"vllm serve m \\$EXTRA\"'",
    "trap 'vllm serve m $EXTRA' EXIT",
    "echo $EXTRA | xargs vllm serve m",
    "cat /x | xargs vllm serve m",
    'echo "vllm serve m $EXTRA" | sh',
    "sh <<EOF\nvllm serve m $EXTRA\nEOF",
    "sh <<'EOF'\nvllm serve m $EXTRA\nEOF",
    "cat <<EOF | bash -s\nvllm serve m $EXTRA\nEOF",
    "vllm serve m $(cat /x)",
    "vllm serve m `cat /x`",
    "vllm serve m $(printf -- '--gpu%s' -memory-utilization=0.95)",
    "vllm serve m --$TOKEN=0.95",
    'set -- $EXTRA; vllm serve m "$@"',
    "read A < /x; vllm serve m $A",
    'printf -v A %s "$EXTRA"; vllm serve m $A',
    "for a in $EXTRA; do vllm serve m $a; done",
    "f() { vllm serve m $1; }; f $EXTRA",
    'curl() { vllm serve m "$@"; }; curl $EXTRA',
    "alias curl='vllm serve m'\ncurl $EXTRA",
    "./curl $EXTRA",
    "env $EXTRA python t.py",
    "export $EXTRA; python t.py",
    f'export {JAX}="$EXTRA"; python t.py',
    'A=(a $EXTRA); vllm serve m "${A[@]}"',
    "vllm serve m ${EXTRA:-x}",
    "vllm serve m ${EXTRA#a}",
    "vllm serve m ${NONE:-$EXTRA}",
    "vllm serve m ${!NONE}",
    "A=--gpu; if x; then A=--device; fi; ./x ${A}-memory-utilization=0.95",
    "sh -c 'vllm serve m --gpu-$0' memory-utilization=0.95",
    "sh -c 'vllm serve m $0$1' --gpu-memory -utilization=0.95",
    "timeout 5 nohup vllm serve m $EXTRA &",
    "if true; then (vllm serve m $EXTRA); fi",
    "case x in x) vllm serve m $EXTRA;; esac",
    "find / -exec vllm serve m $EXTRA \\;",
    "declare -n A=EXTRA; vllm serve m $A",
    "echo '#'; vllm serve m $EXTRA",
    "true \\# ; vllm serve m $EXTRA",
    "coproc vllm serve m $EXTRA",
    "vllm serve m --port=${PORT/0/$EXTRA}",
    'A[0]="$EXTRA"; vllm serve m --port=${A[0]}',
    ". /dev/stdin <<'EOF'\nvllm serve m $EXTRA\nEOF",
    ". ./run.sh $EXTRA",
    "bash -euo pipefail -c 'vllm serve m $(cat /x)'",
    "bash -ceo pipefail 'vllm serve m $(cat /x)'",
    "flock /x -c 'vllm serve m $(cat /x)'",
    "flock /x -c 'vllm serve m --gpu-memory-{utilization=0.95,x}'",
    "cat /x | /usr/bin/xargs vllm serve m",
    "fish -c 'vllm serve m (cat /x)'",
    "zsh -c 'vllm serve m $~EXTRA'",
    "IFS=x; vllm serve m $EXTRA",
    "vllm serve m ${PORT#80}",
    "N=${POD_NAME#x}; vllm serve m $N 0.95",
    "vllm serve m $(date +%n--gpu)",
    "vllm serve m $(mktemp x)",
    "{ cat /x; echo a; } | xargs vllm serve m",
    'printf "%s" "$EXTRA" | xargs -I {} vllm serve {}',
    "vllm serve m $EX\\\nTRA",
    'A\\\n="$EXTRA"; vllm serve m $A',
    "cat <\\\n<E\n'\nE\nvllm serve m $EXTRA # '",
    f"{'true;' * 2000} vllm serve m --port=$EXTRA",
    "HOME=$EXTRA; vllm serve m ~",
    "vllm serve m ${X:-~$EXTRA}",
    ': "$EXTRA"; vllm serve m $_',
    "read < /x; vllm serve m $REPLY",
    "mapfile < /x; vllm serve m $MAPFILE",
    'mapfile -t A < /x; vllm serve m "${A[@]}"',
    'read -a A < /x; vllm serve m "${A[@]}"',
    "printf -vA -- '--gpu%s' -memory-utilization=0.95; vllm serve m $A",
    "mapfile -C 'vllm serve m' -c 1 < /x",
    "[[ $EXTRA =~ -.* ]]; vllm serve m ${BASH_REMATCH[0]}",
    'getopts a: x -a "$EXTRA"; vllm serve m $OPTARG',
    "A=a; unset A; vllm serve m ${A:-$EXTRA}",
    "f() { local A; vllm serve m ${A:-$EXTRA}; }; A=a; f",
    "vllm serve m ${A[@]:-$EXTRA}",
    "trap 'vllm serve m $A' EXIT; A=$EXTRA",
    "nameref A=EXTRA; vllm serve m $A",
    "conda run -n x vllm serve m $EXTRA",
    "micromamba run -n x vllm serve m $EXTRA",
    "git -c alias.v='!vllm serve m' v $EXTRA",
    "split --filter='vllm serve m $EXTRA' /x",
    'sed "1e vllm serve m $EXTRA" /x',
    'awk -v a="$EXTRA" \'BEGIN {system("vllm serve m " a)}\'',
    'awk \'{print "vllm serve m", $EXTRA | "sh"}\' /x',
    "vllm serve m $(awk '{print $1}' /x)",
    "unset $EXTRA; vllm serve m",
    "vllm serve m $(< /x)",
    "jobs -x vllm serve m $EXTRA",
    "hash -p /usr/bin/vllm curl; curl serve m $EXTRA",
    'apt-get update -o APT::Update::Pre-Invoke::="vllm serve m $EXTRA"',
    'zip x /f -T -TT "vllm serve m $EXTRA #"',
    "((1)); read -r A < /x; vllm serve m $A",
    "((1)); read < /x; vllm serve m $REPLY",
    'sh -c "vllm serve m --port=$EXTRA"',
    'eval "vllm serve m --port=$EXTRA"',
)

# Where a word, a variable or a text may be something else than it seems, and an option with it.
DISGUISED = (
    "A=--gpu; if x; then A=--gpux; fi; vllm serve m $A-memory-utilization=0.95",
    "A=--gpu; (A=z); vllm serve m $A-memory-utilization=0.95",
    "s() { A=--gpu; }; s; vllm serve m $A-memory-utilization=0.95",
    'A="x --gpu"; x || A=y; vllm serve m z$A-memory-utilization=0.95',
    'set -- a --gpu; vllm serve m "x$@-memory-utilization=0.95"',
    "set -- 'a --gpu'; vllm serve m x$1-memory-utilization=0.95",
    "set -- a --gpu; vllm serve m x$*-memory-utilization=0.95",
    'A=(x --gpu); vllm serve m "y${A[@]}-memory-utilization=0.95"',
    "A=x; A[0]=--gpu; vllm serve m $A-memory-utilization=0.95",
    "A[$((0))]=--gpu; vllm serve m $A-memory-utilization=0.95",
    "A[(0)]=--gpu; vllm serve m $A-memory-utilization=0.95",
    "A[${#x[0]}]=--gpu; vllm serve m $A-memory-utilization=0.95",
    "declare 'A[0]=--gpu'; vllm serve m $A-memory-utilization=0.95",
    "printf -v 'A[0]' -- --gpu; vllm serve m $A-memory-utilization=0.95",
    "((1)); A+=--gpu; vllm serve m $A-memory-utilization=0.95",
    "((1)); printf -v A -- --gpu; vllm serve m $A-memory-utilization=0.95",
    "fish -c 'set A --gpu; vllm serve m $A-memory-utilization=0.95'",
    "csh -c 'set A = --gpu; vllm serve m $A-memory-utilization=0.95'",
    "env A=--gpu sh -c 'vllm serve m $A-memory-utilization=0.95'",
    "timeout 9 env A='x --gpu' sh -c 'vllm serve m z$A-memory-utilization=0.95'",
    "A=axbx--gpu; vllm serve m z${A//x/$'\t'}-memory-utilization=0.95",
    "IFS=,; A=y--gpu-mem; B=x,${A#y}ory-utilization=0.95; vllm serve m $B",
    "printf -v IFS @; A=x@--gpu; vllm serve m $A-memory-utilization=0.95",
    "A=q--gpu-memory-utilization=0.95; A=${A#q}; vllm serve m $A",
    "s() { A='y --gpu'; }; s; eval \"vllm serve m z${A%z}-memory-utilization=0.95\"",
    "coproc vllm serve m --gpu-memory-{utilization=0.95,x}",
    "((1)); vllm serve m {--gpu,x}-memory-utilization=0.95",
    "declare -l A=--GPU-MEMORY-UTILIZATION=0.95; vllm serve m $A",
    "declare -i N=011; vllm serve m --gpu-memory-utilization=0.$N",
    "A=1; let A=9; vllm serve m --gpu-memory-utilization=0.$A",
    "A=1; : $((A=9)); vllm serve m --gpu-memory-utilization=0.$A",
    "false && A=0; vllm serve m --gpu-memory-utilization=0.${A}95",
    "false && A=0.1; vllm serve m --gpu-memory-utilization $A 0.95",
    ": $((3${C:=--gpu})); vllm serve m $C-memory-utilization=0.95",
    "[[ ${A:=--gpu} ]]; vllm serve m $A-memory-utilization=0.95",
    "PS4='$(vllm serve m --gpu${Z}-memory-utilization=0.95)'; set -x; :",
    "A='x[$(vllm serve m --gpu${Z}-memory-utilization=0.95)]'; : $((A))",
    "test -v 'x[$(vllm serve m --gpu${Z}-memory-utilization=0.95)]'",
    "exec 3<<'E'\nvllm serve m --gpu${Z}-memory-utilization=0.95\nE\n. /dev/fd/3",
    "cat <<'E' | sh\nvllm serve m --gpu${Z}-memory-utilization=0.95\nE",
    "echo 'vllm serve m --gpu${Z}-memory-utilization=0.95' | sh",
    "if x; then V='vllm serve m --gpu${Z}-memory-utilization=0.95'; fi; eval \"$V\"",
    "set -- 'vllm serve m --gpu${Z}-memory-utilization=0.95'; eval \"$1\"",
    "env XLA${Z}_PYTHON_CLIENT_MEM_FRACTION=0.95 python x",
    "read XLA_PYTHON_CLIENT_MEM_FRACTION < /x; export XLA_PYTHON_CLIENT_MEM_FRACTION; python x",
    "fish -c 'vllm serve m --gpu\\x2dmemory-utilization=0.95'",
)
# Where a variable is not set after all.
VANISHING = (
    "false && A=x; vllm serve m $A--gpu-memory-utilization=0.95",
    "false &&\nA=x; vllm serve m $A--gpu-memory-utilization=0.95",
    "A=x true; vllm serve m $A--gpu-memory-utilization=0.95",
    "env A=x true; vllm serve m $A--gpu-memory-utilization=0.95",
    "(A=x); vllm serve m $A--gpu-memory-utilization=0.95",
    "A=x | true; vllm serve m $A--gpu-memory-utilization=0.95",
    "A=x </no; vllm serve m $A--gpu-memory-utilization=0.95",
    "A=x; unset A; vllm serve m $A--gpu-memory-utilization=0.95",
    "A=x; sh -c 'vllm serve m $A--gpu-memory-utilization=0.95'",
    "if false; then B=1 fi; A=x; fi; vllm serve m $A--gpu-memory-utilization=0.95",
    "env -i sh -c 'vllm serve m $PORT--gpu-memory-utilization=0.95'",
)

# Of a program that takes no memory setting, or one word that is another option's.
HARMLESS = (
    f"login --token $TOKEN && {SERVE}",
    f'curl -H "Authorization: Bearer $TOKEN" https://x/y -o /m; {SERVE}',
    f"/usr/bin/curl -H 'a: '$TOKEN https://x; {SERVE}",
    f"huggingface-cli login --token $TOKEN\nexec vllm serve m --port=$PORT {USE}=0.2",
    f"export HF_TOKEN=$TOKEN\nexec {SERVE}",
    f'if [ -n "$EXTRA" ]; then echo "$EXTRA"; fi; {SERVE}',
    f"[[ -n $EXTRA && $TOKEN == y ]] && echo yes; {SERVE}",
    f"git clone https://$TOKEN@example.com/x && {SERVE}",
    f"for i in 1 2 3; do echo $i $TOKEN; sleep $i; done; {SERVE}",
    f"cat > /x.conf <<EOF\ntoken=$TOKEN\nEOF\n{SERVE}",
    f'{SERVE} "--api-key=$TOKEN"',
    f"case $EXTRA in a|b) echo $TOKEN;; *) true;; esac; {SERVE}",
    f"{SERVE} --tensor-parallel-size $(nproc)",
    f'ARGS="--port 1"; if [ -n "$TP" ]; then ARGS="$ARGS --tp $TP"; fi; exec {SERVE} $ARGS',
    f'ARGS=(--port 8000 --dtype auto); {SERVE} "${{ARGS[@]}}"',
    f'printf %s "$TOKEN" > /t 2>&1; {SERVE} >/log 2>&1',
    f'until curl -sf -H "x: $TOKEN" localhost; do sleep 1; done; {SERVE}',
    f"# vllm serve m {USE} 0.95 $EXTRA\n{SERVE}",
    f"vllm serve ${{MODEL:-m}} --port ${{PORT:-1}} {USE} 0.2",
    'wget --header="Authorization: $TOKEN" x; python train.py --seed=1',
    "pip install --index-url https://$TOKEN@pypi.example/simple y && python train.py",
    'mkdir -p "/a/$EXTRA" && cd "/a/$EXTRA" && python train.py',
    'python train.py "--data=$EXTRA"',
    "echo llama3 $TOKEN | xargs -n1 /bin/ollama pull",
    "python train.py --out /out/run-$(date +%Y%m%d-%H) --host=$(hostname)",
    "N=${HOSTNAME##*-}\ntorchrun --node_rank=$N --nnodes=2 train.py",
    "D=$(mktemp -d); python train.py $D",
    f'while IFS= read -r line; do echo "$line"; done < /x; {SERVE}',
    f"bash -euo pipefail -c 'curl -d $TOKEN x; {SERVE}'",
    "python x.py --dist-init-addr $(LWS_LEADER_ADDRESS):20000",
    """exec vllm serve --port 8200 --kv-transfer-config '{"kv_connector":"N", "kv_role":"kv_both"}' m --gp=0.2""",
    """vllm serve m --gp=0.2 --limits '[{"image": 1,"video":2}, {"a":3,"b":4}]'""",
    "python x.py \\\n  --seed=$PORT \\\n  --name 'a \\\\'",
    f'if [ -d /a ]; then DIR=/a; else DIR=/b; fi; python $DIR/x.py "--out=$DIR/o"; {SERVE}',
    f"NAME=m; REV=1; {SERVE} --served-model-name $NAME-$REV",
    f"git config --global credential.helper '!f() {{ echo \"password=$TOKEN\"; }}; f'; {SERVE}",
    "conda activate x && pip install y; python $PORT.py",
    f"export IFACE=$(ip route | awk '/default/ || 0 {{print $5}}'); {SERVE}",
    f'git -c http.extraHeader="Authorization: $TOKEN" clone https://x; {SERVE}',
    f"unset LD_LIBRARY_PATH; export PATH=/x:$PATH; {SERVE}",
    f'sed -i "s|@TOKEN@|$TOKEN|g" /x.conf; {SERVE}',
    f"apt-get -o Acquire::Retries=3 update; T=$(< /run/t); curl -d $T x; {SERVE}",
    "env HF_HOME=/x LEVEL=debug sh -c 'python x.py --dir=$HF_HOME $LEVEL'",
)


def shell_texts() -> Iterator[Greedy]:
    yield from _texts("reaching", REACHING, "warned", "denied")
    yield from _texts("harmless", HARMLESS, "kept", "kept")
    yield from _texts("disguised", DISGUISED, "warned", "denied")
    yield from _texts("vanishing", VANISHING, "denied", "denied")
    decoded = "vllm serve m $'\\055\\x2dgpu-memory-utilization=0.95'"
    yield Greedy("an option in a shell's escapes", {"command": ["bash", "-c", decoded]}, "denied", "denied")
    parts = "D=-; vllm serve m ${D}-gpu-memory-utilization=0.95"
    yield Greedy("an option in parts", {"command": ["sh", "-c", parts]}, "denied", "denied")
    hook = {"lifecycle": {"postStart": {"exec": {"command": ["sh", "-c", f"curl -d $TOKEN x; {SERVE}"]}}}}
    yield Greedy("a hook with a secret", hook | {"env": UNREAD}, "kept", "kept")
    probe = {"livenessProbe": {"exec": {"command": ["vllm", "bench", "$(EXTRA)"]}}}
    yield Greedy("a probe with a reference", probe | {"env": UNREAD}, "warned", "denied")
    tool = {"command": ["curl", "-H", "$(TOKEN)"], "env": UNREAD}
    yield Greedy("a tool with a reference", tool, "kept", "kept")
    piped = ["sh", "-ec", 'p=$(mktemp -d) && x "$(command -v pip)" "$0" "$@"', "sh", "--a={}"]
    all_of_map = {"command": ["launch", "--", *piped], "envFrom": [{"configMapRef": {"name": "a"}}]}
    yield Greedy("a command in a text beside envFrom", all_of_map, "kept", "kept")
    prefixed = [{"prefix": "command -v ", "configMapRef": {"name": "a"}}]
    yield Greedy("the same with a prefix of that name", all_of_map | {"envFrom": prefixed}, "warned", "denied")
    image = {"args": ["curl", "-H", "$(TOKEN)"], "env": UNREAD}
    yield Greedy("words like a tool's for an unknown program", image, "warned", "denied")


def _texts(kind: str, texts: tuple[str, ...], under_mps: Outcome, sliced: Outcome) -> Iterator[Greedy]:
    for text in texts:
        fields = {"command": ["sh", "-c", text], "env": UNREAD}
        yield Greedy(f"{kind}: {text[-90:]!a} {len(text)}", fields, under_mps, sliced)
