"""Threads that ask an API server beside each other, and end with whoever waits for them."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from console.api_server import MOST_CONNECTIONS, ApiServer


@contextmanager
def asking(api: ApiServer) -> Iterator[ThreadPoolExecutor]:
    """Lend threads; where the user interrupts them, what is not asked yet is never asked."""
    threads = ThreadPoolExecutor(MOST_CONNECTIONS)
    try:
        yield threads
        threads.shutdown()
    except (KeyboardInterrupt, SystemExit):
        api.stop()
        raise
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
