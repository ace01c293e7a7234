"""Who holds devices of DRA, also where the kubelet has forgotten the pod."""

from collections.abc import Collection
from typing import Any

from plugin.dra.checkpoint import Prepared
from plugin.dra.tenants import located_with_dra
from plugin.pod_resources.tenants import Tenant
from tests.plugin.dra.prepared import device


class Driver:
    """A driver with one claim of one pod."""

    def __init__(self) -> None:
        self.left: list[Prepared] = []

    def still_used(self, but: Collection[tuple[str, str]]) -> tuple[Prepared, ...]:
        return tuple(one for one in self.left if (one.namespace, one.pod) not in but)

    def parts_of(self, name: str) -> dict[str, int]:
        return {"GPU-0": 300} if name == GIVEN.name else {}


GIVEN = device(300, "GPU-0", request="container-0-request-0")
CLAIM = Prepared(namespace="ns", name="claim", devices=(GIVEN,), pod="p", pod_uid="uid")
LISTED = Tenant(namespace="ns", pod="p", container="main", vgpus=(), devices=(GIVEN.name,))


def names(tenants: tuple[Tenant, ...]) -> list[str]:
    assert all(one.together == {"GPU-0"} for one in tenants)
    return [one.name for one in tenants]


def test_a_container_that_is_left_keeps_the_name_by_which_the_kubelet_listed_it() -> None:
    listed, driver = [LISTED], Driver()
    on: Any = driver
    read = located_with_dra(lambda: tuple(listed), on)
    driver.left = [CLAIM]
    assert names(read()) == ["ns/p/main"]
    listed.clear()
    assert [names(read()) for _ in range(3)] == [["ns/p/main"]] * 3
    driver.left = []
    assert read() == ()


def test_one_that_it_never_listed_is_named_by_its_request() -> None:
    driver = Driver()
    on: Any = driver
    driver.left = [CLAIM]
    assert names(located_with_dra(lambda: (), on)()) == ["ns/p/container-0-request-0"]


def test_a_claim_of_which_no_pod_is_known_is_nobodys() -> None:
    driver = Driver()
    on: Any = driver
    driver.left = [Prepared(namespace="ns", name="claim", devices=(GIVEN,))]
    assert located_with_dra(lambda: (), on)() == ()
