"""Texts for a shell in which something cannot be read: where it may reach a framework, and where it cannot."""

from collections.abc import Iterator, Sequence
from typing import Any

from tests.bypass.attempt import variable
from tests.bypass.greedy import CONFIG_MAP, LABEL, NAME, SECRET, USE, Greedy, Outcome
from tests.bypass.unread_texts import DISGUISED, IN_PARTS, REACHING

Env = Sequence[dict[str, Any]]

UNREAD = [variable("EXTRA", None, **CONFIG_MAP), variable("TOKEN", None, **SECRET), variable("PORT", "8000")]
SERVE = f"vllm serve m {USE} 0.2"
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

# Where the pod's name stands before what is unread, so that it begins no option.
NAMED = (
    'python train.py --run "$POD-$EXTRA"',
    'python train.py --run "${POD}-$(git rev-parse HEAD)"',
    'RUN="$POD-$EXTRA"; python train.py --run "$RUN"',
    'python train.py --run "$HOSTNAME-$EXTRA"',
    'timeout 9 python train.py --run "$HOSTNAME-$(cat /x)"',
)
# And where it does not, or is itself a part of an option.
NOT_NAMED = (
    "python train.py --run $POD-$EXTRA",
    "python train.py --$POD=0.95",
    "python train.py --gpu-$POD 0.95",
    'python train.py "${POD#x}-$EXTRA"',
    'python train.py "${POD%x}-$EXTRA"',
    'python train.py "${POD/x}-$EXTRA"',
    'python train.py "${POD##*-}-$EXTRA"',
    'python train.py "${POD:9}-$EXTRA"',
    'python train.py "${POD:+}-$EXTRA"',
    'POD=; python train.py "$POD-$EXTRA"',
    'unset POD; python train.py "$POD-$EXTRA"',
    'read POD </dev/null; python train.py "$POD-$EXTRA"',
    'for POD in "" a; do python train.py "$POD-$EXTRA"; done',
    'f() { local POD; python train.py "$POD-$EXTRA"; }; f',
    'env -i sh -c \'python train.py "$POD-$0"\' "$EXTRA"',
    'env -u POD sh -c \'python train.py "$POD-$0"\' "$EXTRA"',
    'env -u HOSTNAME sh -c \'python train.py "$HOSTNAME-$0"\' "$EXTRA"',
    'unset HOSTNAME; python train.py "$HOSTNAME-$EXTRA"',
    'HOSTNAME=$NONE; python train.py "$HOSTNAME-$EXTRA"',
    'python train.py "$OTHER-$EXTRA"',
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
    f"[[ $EXTRA =~ ^(a|b)$ || $TOKEN != 'p|q' && -f /x ]] && curl -d $TOKEN x; {SERVE}",
    f"git clone https://$TOKEN@example.com/x && {SERVE}",
    f"for i in 1 2 3; do echo $i $TOKEN; sleep $i; done; {SERVE}",
    f"cat > /x.conf <<EOF\ntoken=$TOKEN\nEOF\n{SERVE}",
    f'{SERVE} "--api-key=$TOKEN"',
    f"case $EXTRA in a|b) echo $TOKEN;; *) true;; esac; {SERVE}",
    f"{SERVE} --tensor-parallel-size $(nproc)",
    "vllm serve m --port ${PORT#80} --gpu-memory-utilization 0.2",
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
    f'sed -e "s|@TOKEN@|$TOKEN|g" /x > /y; {SERVE}',
    f"apt-get -o Acquire::Retries=3 update; T=$(< /run/t); curl -d $T x; {SERVE}",
    "env HF_HOME=/x LEVEL=debug sh -c 'python x.py --dir=$HF_HOME $LEVEL'",
)


def shell_texts() -> Iterator[Greedy]:
    yield from _texts("reaching", REACHING, "warned", "denied")
    yield from _texts("harmless", HARMLESS, "kept", "kept")
    yield from _texts("disguised", DISGUISED, "warned", "denied")
    yield from _texts("in parts", IN_PARTS, "limited", "denied")
    yield from _texts("vanishing", VANISHING, "limited", "denied")
    named = [*UNREAD, variable("POD", None, **NAME), variable("OTHER", None, **LABEL)]
    yield from _texts("named", NAMED, "kept", "kept", named)
    yield from _texts("not named", NOT_NAMED, "warned", "denied", named)
    joined = {"args": ["--run", "$(POD)-$(EXTRA)"], "env": named}
    yield Greedy("a word that begins with the pod's name", joined, "kept", "kept")
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


def _texts(
    kind: str, texts: tuple[str, ...], under_mps: Outcome, sliced: Outcome, env: Env = UNREAD
) -> Iterator[Greedy]:
    for text in texts:
        fields = {"command": ["sh", "-c", text], "env": env}
        yield Greedy(f"{kind}: {text[-90:]!a} {len(text)}", fields, under_mps, sliced)
