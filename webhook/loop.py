"""What a connection needs of the loop that it is in."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from webhook.connection import Connection
    from webhook.deadlines import Deadline
    from webhook.http1 import Answer, Request
    from webhook.tls import ServingCertificate


class Loop(Protocol):
    """The states of its connections, what all of them hold, and how they go on."""

    handshakes: "Deadline[Connection]"
    idle: "Deadline[Connection]"
    requests: "Deadline[Connection]"
    answers: "Deadline[Connection]"
    drains: "Deadline[Connection]"
    held_bytes: int  # of all bodies that are not complete, and all answers that are not taken
    is_ending: bool  # no connection gets a second answer
    certificate: "ServingCertificate"

    def answer(self, request: "Request") -> "Answer":
        """Answer a request."""

    def wait_for(self, connection: "Connection", events: int) -> None:
        """Call `proceed` when one of the *events* of epoll has come."""

    def proceed_later(self, connection: "Connection") -> None:
        """Call `proceed` when the others had their turn."""

    def forget(self, connection: "Connection") -> None:
        """Keep nothing of a connection that is closed."""
