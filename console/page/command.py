"""`gpu-share console`: serve the page until it is interrupted."""

import os
import signal
import sys
from threading import Event
from typing import Final

import click

from console.api_server import ApiServer
from console.page.app import create_app
from console.page.desk import Desk, Preview
from console.page.guard import TOKEN, Guard
from console.page.server import HOST, Server
from program.front import FAILED, failed

_END_SECONDS: Final = 1.0  # that a look may take to end


def run(api: ApiServer, *, namespace: str, port: int, preview: Preview) -> int:
    """
    Serve the page, and say where it is.

    Returns:
        0, or 1 if the port is taken.
    """
    guard = Guard()
    desk = Desk(api, namespace=namespace, preview=preview)
    try:
        server = Server(create_app(desk, guard), port)
    except OSError as error:
        taken = OSError(
            f"port {port} of {HOST}: {os.strerror(error.errno or 0)}: choose another by --port, or 0 for any"
        )
        return failed("console", taken, FAILED)
    is_over = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_over.set())
    desk.watch.start()
    server.start()
    click.echo(f"The page is at http://{HOST}:{server.port}/?{TOKEN}={guard.token}")
    click.echo("Whoever has this address sees what you may see. End it with Ctrl+C.")
    is_over.wait()
    server.close()
    if not desk.watch.close(_END_SECONDS):
        sys.stdout.flush()
        os._exit(0)  # Python would wait for the threads of a look that hangs; they only read
    return 0
