"""The simulated API server, as many clients at once meet it."""

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from certs.issuer import issue_to_directory
from plugin.dra.api_server import ApiServer, path_of_node
from plugin.simulated.api_server import SimulatedApiServer, Store

AT_ONCE = 100
NODE = path_of_node("node-1")


def test_nobody_waits_for_the_handshake_of_another_client(tmp_path: Path) -> None:
    issue_to_directory(tmp_path, ["localhost"])
    (tmp_path / "token").write_text("token")
    store = Store()
    store.put(NODE, {"metadata": {"name": "node-1"}})
    with (
        SimulatedApiServer(store, certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key") as server,
        socket.create_connection(("localhost", server.port)),  # which begins no handshake
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        api = ApiServer("localhost", server.port, credentials=tmp_path)
        names = [one["metadata"]["name"] for one in pool.map(api.get, [NODE] * AT_ONCE)]
    assert names == ["node-1"] * AT_ONCE
