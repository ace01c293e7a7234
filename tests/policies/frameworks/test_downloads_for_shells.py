"""What a shell reads of a download is nobody's here; what the text itself writes for a shell is read."""

from typing import Any

import pytest

from policies.grant import Grant
from tests.policies.pods import container, denied, granted, pod, policies

SLICED = policies("strategy: time-slicing")
URL = "https://astral.sh/uv/install.sh"
HIDDEN = 'echo "vllm serve m $(echo --gpu)-memory-utilization=0.95"'


def runs(script: str) -> dict[str, Any]:
    return pod("0.2", container(command=["bash", "-c", script]))


@pytest.mark.parametrize(
    "script",
    [
        f'curl -LsSf {URL} | sh; export PATH="$HOME/.local/bin:$PATH"; uv run train.py',
        f'export PATH="$HOME/.local/bin:$PATH"; curl -LsSf {URL} | sh && uv run train.py',
        "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y && export PATH=/x:$PATH",
        "curl -fsSL https://pixi.sh/install.sh | bash; export PATH=/root/.pixi/bin:$PATH; pixi run t",
        'curl https://sdk.cloud.google.com | bash; env PATH="/root/sdk/bin:$PATH" python t.py',
        f'wget -qO- {URL} | env UV_INSTALL_DIR=/x sh; export PATH="/x:$PATH"; uv run t.py',
        f"wget -q -O - {URL} |\nsudo -E bash - >/dev/null 2>&1\nexport PATH=/x:$PATH; uv run t.py",
        f'curl -LsSf {URL} | sh; echo "v $(cat /v)"; python t.py',
        "curl -LsSf 'https://x.example/i.sh?a=1&b=2#x' | sh; export PATH=/x:$PATH; uv run t.py",
        f"curl -LsSf {URL} | sh; nvidia-smi | python log.py; export PATH=/x:$PATH; uv run t.py",
    ],
)
def test_an_installer_from_a_pipe_is_granted_beside_words_that_it_does_not_read(script: str) -> None:
    assert isinstance(granted(runs(script), SLICED), Grant)


@pytest.mark.parametrize(
    "script",
    [
        f"{HIDDEN} | sh",
        f"{HIDDEN} > f; cat f | sh",
        f"curl {URL} | sh; {HIDDEN} | sh",
        f"{{ {HIDDEN}; curl {URL}; }} | sh",
        f"({HIDDEN}; curl {URL}) | sh",
        f"for i in 1; do {HIDDEN}; curl {URL}; done | sh",
        f"curl {URL} | {{ cat; {HIDDEN}; }} | sh",
        f"curl {URL} || {HIDDEN} | sh",
        f"curl() {{ {HIDDEN}; }}; curl {URL} | sh",
        f"{HIDDEN} > f; curl file:///f | sh",
        f"{HIDDEN} > f; curl http://localhost/f | sh",
        f"{HIDDEN} > f; curl http://x.localhost/f | sh",
        f"{HIDDEN} > f; curl http://LocalHost.localdomain/f | sh",
        f"{HIDDEN} > f; curl http://a.com:x@localhost/f | sh",
        f"{HIDDEN} > f; curl -K f {URL} | sh",
        f"{HIDDEN} > f; curl -w @f {URL} | sh",
        f"{HIDDEN} > f; curl {URL} | sh < f",
        f"{HIDDEN} > f; exec 3< f; curl {URL} | sh <&3",
        f"{HIDDEN} > f; exec 3< f; curl {URL} | bash -c 'sh <&3'",
        f"{HIDDEN} > f; exec 3< f; curl {URL} | sh /dev/fd/3",
        f"f() {{ sh; }}; curl {URL} | f; {HIDDEN} | f",
        f"exec > >(sh); curl {URL} | sh; {HIDDEN}",
        f"coproc sh; curl {URL} | sh; {HIDDEN} >&${{COPROC[1]}}",
        f'export A="$({HIDDEN})"; curl {URL} | sh; env | sed -n s/^A=//p | sh',
    ],
)
def test_what_a_text_may_write_for_a_shell_is_read_beside_a_download(script: str) -> None:
    assert denied(runs(script), SLICED).code == "MemoryArgumentAboveShare"
