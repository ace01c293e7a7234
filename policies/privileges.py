"""The privileges of one container, by which it could bypass its share and those of others."""

from policies.contract import ALLOWED_CAPABILITIES
from policies.denial import Findings
from policies.errors import quoted
from policies.pod import Slot, named


def check_privileges(slot: Slot, found: Findings) -> None:
    """Deny a container that is privileged, or adds a capability that reaches the node."""
    security = slot.container.security_context
    if security is None:
        return
    if security.privileged:
        what = f"{named(slot)} is privileged, so it can bypass its own share and those of others"
        fix = "Remove securityContext.privileged, or ask for a whole GPU without gpu-share"
        found.deny("PrivilegedContainer", what, fix)
    for capability in security.capabilities.add or () if security.capabilities else ():
        # Python and Go write more characters than a to z as A to Z, and not the same ones.
        is_plain = capability.isascii()
        if not is_plain or capability.upper().removeprefix("CAP_") not in ALLOWED_CAPABILITIES:
            what = f"{named(slot)} adds the capability {quoted(capability)}, which reaches the node, and so every share"
            found.deny("PrivilegedContainer", what, "Remove it from securityContext.capabilities.add")
