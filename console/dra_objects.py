"""Objects of Dynamic Resource Allocation as far as the view needs them; what is not known of them is ignored."""

import msgspec

from console.objects import Metadata
from console.words import Shown


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an object."""


class Cel(_Part, frozen=True, kw_only=True):
    """A condition on a device, in CEL."""

    expression: str = ""


class DeviceSelector(_Part, frozen=True, kw_only=True):
    """What a device must be."""

    cel: Cel = Cel()


class DeviceClassSpec(_Part, frozen=True, kw_only=True):
    """What a class says."""

    extended_resource_name: Shown = Shown("")
    selectors: tuple[DeviceSelector, ...] = ()


class DeviceClass(_Part, frozen=True, kw_only=True):
    """A DeviceClass: ours is a size of a share."""

    metadata: Metadata = Metadata()
    spec: DeviceClassSpec = DeviceClassSpec()


class CounterSet(_Part, frozen=True, kw_only=True):
    """What devices share."""

    name: Shown = Shown("")


class Attribute(_Part, frozen=True, kw_only=True):
    """What a device says of itself, where that is a text."""

    string: str = ""


class BasicDevice(_Part, frozen=True, kw_only=True):
    """What is in a device itself since v1beta2."""

    attributes: dict[str, Attribute] = {}


class Device(BasicDevice, frozen=True, kw_only=True):
    """A device of a driver."""

    basic: BasicDevice = BasicDevice()

    def attribute(self, name: str) -> str:
        """Return a text that it says of itself; empty if it says none."""
        found = self.attributes.get(name) or self.basic.attributes.get(name)
        return found.string if found else ""


class ResourceSliceSpec(_Part, frozen=True, kw_only=True):
    """Which devices of a node a driver has."""

    driver: Shown = Shown("")
    node_name: Shown = Shown("")
    shared_counters: tuple[CounterSet, ...] = ()
    devices: tuple[Device, ...] = ()


class ResourceSlice(_Part, frozen=True, kw_only=True):
    """A ResourceSlice."""

    metadata: Metadata = Metadata()
    spec: ResourceSliceSpec = ResourceSliceSpec()
