"""What gunicorn takes from around its process, some of it as it is imported: the webhook goes by its options alone."""

import os
from pathlib import Path
from typing import Final

from webhook.settings import StartError

# Those that change a setting or the sockets; NOTIFY_SOCKET only says to whom the start is told.
_READ_BY_GUNICORN: Final = (
    "FORWARDED_ALLOW_IPS",
    "GUNICORN_FD",
    "GUNICORN_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "PORT",
    "SENDFILE",
    "WEB_CONCURRENCY",
)


def prepare_for_gunicorn() -> None:
    """
    Leave nothing in the environment that gunicorn takes for a setting; before it is imported.

    Raises:
        StartError: If there is no working directory, which it looks for.
    """
    for name in _READ_BY_GUNICORN:
        os.environ.pop(name, None)
    try:
        Path.cwd()
    except OSError as error:
        raise StartError(f"the working directory is gone ({error.strerror}): start it in another one") from None
