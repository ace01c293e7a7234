"""What claims hold, in files: the checkpoint and the CDI specifications, and why they cannot be written."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from plugin.dra.checkpoint import FILE, Checkpoint, Prepared, read_checkpoint, write_checkpoint
from plugin.dra.specifications import (
    remove_others,
    remove_specification,
    restore_specification,
    try_directory,
    write_specification,
)
from plugin.errors import HandoverError, HoldingsError


class ClaimFiles:
    """
    The checkpoint in *directory* and the specifications in *cdi_dir*: one call at a time writes.

    What could not be written once, for want of room for instance, is not taken for writable until it was tried again.
    """

    def __init__(self, directory: Path, cdi_dir: Path) -> None:
        self._directory = directory
        self._cdi_dir = cdi_dir
        self.unwritten = ""  # why what claims hold cannot be written; empty if it can

    def read(self) -> Checkpoint:
        """Read the checkpoint; DraError if it cannot be."""
        return read_checkpoint(self._directory)

    def write_only(self, claims: Mapping[str, Prepared]) -> set[str]:
        """Have specifications of these claims, by UID, and of no others, and name those that cannot have one."""
        self.unwritten = ""
        self._done(remove_others, claims)  # first: that makes room
        unspecified = {uid for uid, prepared in claims.items() if not self._done(write_specification, uid, prepared)}
        self._done(try_directory)  # before the next claim is sent here
        return unspecified

    def keep(self, checkpoint: Checkpoint) -> None:
        """Replace the checkpoint; HoldingsError if that cannot be: the old one stays."""
        with self._seen():
            self._keep(checkpoint)

    def specify(self, uid: str, prepared: Prepared) -> None:
        """Write the specification of a claim; HandoverError if that cannot be."""
        with self._seen():
            write_specification(self._cdi_dir, uid, prepared)

    def restore(self, uid: str, prepared: Prepared) -> None:
        """Write the specification of a claim again, if somebody has removed or changed it and it can be written."""
        self._done(restore_specification, uid, prepared)

    def remove(self, uid: str) -> None:
        """Remove the specification of a claim, if it is there; HandoverError if that cannot be."""
        with self._seen():
            remove_specification(self._cdi_dir, uid)

    def try_again(self, checkpoint: Checkpoint, claims: Mapping[str, Prepared]) -> set[str]:
        """See whether all can be written now, with the *checkpoint* that is there already; *claims* are as above."""
        unspecified = self.write_only(claims)
        with suppress(HoldingsError):
            self.keep(checkpoint)
        return unspecified

    def _done(self, change: Callable[..., None], *arguments: object) -> bool:
        """Change something in the directory of specifications, and say whether that could be."""
        try:
            with self._seen():
                change(self._cdi_dir, *arguments)
        except HandoverError:
            return False
        return True

    def _keep(self, checkpoint: Checkpoint) -> None:
        try:
            write_checkpoint(self._directory, checkpoint)
        except OSError as error:
            raise HoldingsError(
                f"{self._directory / FILE}: what claims hold cannot be written there: {error.strerror or error}: make "
                "room on that file system of the node, and have it writable"
            ) from error

    @contextmanager
    def _seen(self) -> Iterator[None]:
        try:
            yield
        except (HandoverError, HoldingsError) as error:
            self.unwritten = str(error)
            raise
