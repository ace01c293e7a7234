"""
A mutating webhook of somebody else, for `python3 -c` in the project's image: it adds a container before all others.

It stands for the webhooks of service meshes and secret stores.
"""

import base64
import json
import ssl
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CONTAINER = {"name": "injected", "image": "busybox:1.37", "imagePullPolicy": "IfNotPresent"}


class Injector(BaseHTTPRequestHandler):
    """Answers every review."""

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        names = [one["name"] for one in review["request"]["object"]["spec"]["containers"]]
        patch = [] if CONTAINER["name"] in names else [{"op": "add", "path": "/spec/containers/0", "value": CONTAINER}]
        response = {
            "uid": review["request"]["uid"],
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
        }
        body = json.dumps(review | {"request": None, "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
    server = ThreadingHTTPServer(("", 8443), Injector)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.serve_forever()
