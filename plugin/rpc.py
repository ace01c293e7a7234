"""
gRPC over unix sockets, also where a node has no more threads.

A tenant may take all that a node has, or all that its pods may have (the kubelet's `podPidsLimit`). gRPC ends a process
that starts it then, and a server that wants a thread for a call hears no further call ever after.
"""

import ctypes
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Barrier, Thread

import grpc

from plugin.errors import NO_MORE_THREADS, SocketError, ThreadsError
from plugin.lifecycle import started
from plugin.sockets import SocketIdentity, identify, target

_OPTIONS = (
    ("grpc.enable_http_proxy", 0),  # a proxy in the environment is not meant for this
    ("grpc.use_local_subchannel_pool", 1),  # nothing is left of an earlier call to a kubelet that is gone
    # Who calls tries again, at intervals. gRPC would do so at once and without end where each connection is ended
    # before its call was looked at, and would keep what it sent: 2.6 GB within 5 s (seen with grpcio 1.85).
    ("grpc.enable_retries", 0),
)
_STOP_GRACE_SECONDS = 0.5  # for calls under way; they take milliseconds
_OWNER_ONLY = 0o600
_TOO_FEW = f"gRPC has too few threads: {NO_MORE_THREADS}"
_MOST_THREADS = 24  # more than it starts at first: 19 where there are 16 cores and more (seen with grpcio 1.85)
_BEGUN_SECONDS = 5.0  # within which gRPC has started its threads
_SOON_SECONDS = 0.01


@cache
def keep_running() -> None:
    """
    Start gRPC for as long as the process lives: with its last channel or server it ends its threads otherwise.

    Raises:
        ThreadsError: If it has not all of its threads; the process has to end.
    """
    try:
        # Where it gets some of its threads and not all, gRPC ends the process without a word.
        _pool(_MOST_THREADS, "gRPC").shutdown()
    except RuntimeError as error:
        raise ThreadsError(_TOO_FEW) from error
    kept = grpc.insecure_channel(target(Path("/")), options=_OPTIONS)
    _never_free(kept)
    if not _runs(kept):
        raise ThreadsError(_TOO_FEW)


def _runs(kept: grpc.Channel) -> bool:
    """Whether calls to where nobody listens fail, and in time: started without a thread, gRPC never gets it."""
    codes = []
    nobody: grpc.UnaryUnaryMultiCallable[bytes, bytes] = kept.unary_unary("/nobody/listens")

    def call() -> None:
        for timeout_seconds, waits in ((_BEGUN_SECONDS, False), (_SOON_SECONDS, True)):
            try:
                nobody(b"", timeout=timeout_seconds, wait_for_ready=waits)
            except grpc.RpcError as error:
                codes.append(error.code())

    started(Thread(target=call, name="gRPC", daemon=True)).join(2 * _BEGUN_SECONDS)
    return codes == [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED]


def channel(path: Path, *options: tuple[str, int]) -> grpc.Channel:
    """
    Make a channel to who listens at *path*; use it in a `with` statement.

    Raises:
        ThreadsError: If gRPC cannot run; the process has to end.
    """
    keep_running()
    return grpc.insecure_channel(target(path), options=(*_OPTIONS, *options))


@contextmanager
def serving(
    path: Path, add: Callable[[grpc.Server], None], *, unseen: Path, threads: int, name: str
) -> Iterator[SocketIdentity | None]:
    """
    Serve what *add* adds on *path*, with so many threads of that name, and give the socket's identity.

    The socket is gone afterwards, unless another one took its place. It is bound as *unseen* and moved: an old
    file is replaced at once, the socket is seen only when it answers, and gRPC, which removes the name it bound, cannot
    remove a successor's socket.

    Raises:
        SocketError: If it cannot be served now.
        ThreadsError: If there is no thread for what cannot be undone; the process has to end.
    """
    keep_running()
    try:
        pool = _pool(threads, name)
    except RuntimeError as error:
        raise SocketError(f"{path}: cannot serve: {error}: {NO_MORE_THREADS}") from error
    server = grpc.server(pool)
    add(server)
    try:
        unseen.unlink(missing_ok=True)
        server.add_insecure_port(target(unseen))
    except (OSError, RuntimeError) as error:
        pool.shutdown()
        raise SocketError(f"{path}: cannot serve: {error}") from error
    try:
        server.start()
    except RuntimeError as error:
        _never_free(server)
        raise ThreadsError(f"{path}: cannot serve: {error}: {NO_MORE_THREADS}") from error
    try:
        identity = _shown(unseen, path)
        try:
            yield identity
        finally:
            _remove(path, identity)
    finally:
        _stop(server)
        pool.shutdown()


def _never_free(one: object) -> None:
    """Keep something of gRPC to the end: freed, it waits for its threads, and for ever for one that never was."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))


def _shown(unseen: Path, path: Path) -> SocketIdentity | None:
    try:
        unseen.chmod(_OWNER_ONLY)
        identity = identify(unseen)
        unseen.replace(path)
    except OSError as error:
        unseen.unlink(missing_ok=True)
        raise SocketError(f"{path}: cannot serve: {error}") from error
    return identity


def _remove(path: Path, identity: SocketIdentity | None) -> None:
    if identify(path) == identity:
        with suppress(FileNotFoundError):
            path.unlink()


def _pool(threads: int, name: str) -> ThreadPoolExecutor:
    """Start all threads of a server at once: each waits until all are there."""
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    all_there = Barrier(threads)
    try:
        for _ in range(threads):
            pool.submit(all_there.wait)
    except RuntimeError:
        all_there.abort()
        pool.shutdown()
        raise
    return pool


def _stop(server: grpc.Server) -> None:
    try:
        stopped = server.stop(_STOP_GRACE_SECONDS)
    except RuntimeError:  # no thread that could wait for calls under way: they are cancelled
        stopped = server.stop(None)
    stopped.wait()
