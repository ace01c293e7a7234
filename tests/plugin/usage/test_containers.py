"""Which container has which ID, by the links to their logs."""

from pathlib import Path

import pytest

from plugin.usage.cgroups import ContainerId
from plugin.usage.containers import Container, Containers, containers
from tests.plugin.usage.links import OTHER_UID, UID, linked


@pytest.mark.parametrize(
    "name",
    [
        f"../x_team-a_main-{'a' * 64}.log",
        f"x_team_a_main-{'a' * 64}.log",
        f"x_team-a_main-{'a' * 63}.log",
        f"x_team-a_main-{'A' * 64}.log",
        f"x_team-a_main-{'a' * 64}.log\n",
        f"x y_team-a_main-{'a' * 64}.log",
        "x.log",
    ],
)
def test_a_name_that_no_kubelet_gives_is_no_container(tmp_path: Path, name: str) -> None:
    if "/" not in name:
        (tmp_path / name).touch()
    assert containers(tmp_path) == Containers()


def test_names_with_dots_and_dashes_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / f"web-0.v1_team-a_side-car-{'a' * 64}.log").touch()
    assert containers(tmp_path).by_id == {"a" * 64: Container("team-a", "web-0.v1", "side-car")}


@pytest.mark.parametrize("digits_left", [63, 10, 1, 0, -1])
def test_a_container_is_known_by_its_pod_where_its_links_name_was_cut(tmp_path: Path, digits_left: int) -> None:
    container = "c" * 63
    pod = "p" * (251 - len(f"_team-a_{container}-") - digits_left)
    linked(tmp_path, pod, container, "a", uid=UID)
    linked(tmp_path, "q" + pod[1:], container, "a", uid=OTHER_UID)
    found = containers(tmp_path)
    assert found.find(ContainerId(UID, "a" * 64)) == Container("team-a", pod, container)
    assert found.find(ContainerId(OTHER_UID, "a" * 64)) == Container("team-a", "q" + pod[1:], container)
    assert found.find(ContainerId(UID[::-1], "a" * 64)) is None
    assert found.find(ContainerId(UID, "")) is None


def test_a_link_whose_name_is_cut_within_the_containers_name_may_be_anothers(tmp_path: Path) -> None:
    linked(tmp_path, "p" * 190, "c" * 62 + "a", "a", uid=UID)
    assert containers(tmp_path).find(ContainerId(UID, "a" * 64)) is None


def test_of_several_containers_of_a_pod_what_is_left_of_their_ids_tells_them_apart(tmp_path: Path) -> None:
    pod = "p" * 180
    linked(tmp_path, pod, "one", "a", uid=UID)
    linked(tmp_path, pod, "two", "b", uid=UID)
    linked(tmp_path, pod, "x" * 62 + "y", "a", uid=UID)
    linked(tmp_path, pod, "x" * 62 + "z", "b", uid=UID)
    found = containers(tmp_path)
    assert found.find(ContainerId(UID, "a" * 64)) == Container("team-a", pod, "one")
    assert found.find(ContainerId(UID, "b" * 64)) == Container("team-a", pod, "two")
    assert found.find(ContainerId(UID, "c" * 64)) is None  # one of the others, but which?


def test_a_link_that_leads_elsewhere_is_no_container(tmp_path: Path) -> None:
    (tmp_path / ("p" * 251 + ".log")).symlink_to("/var/log/pods/team-a_other_uid/main/0.log")
    (tmp_path / ("q" * 251 + ".log")).symlink_to("/elsewhere")
    (tmp_path / ("r" * 251 + ".log")).touch()
    assert containers(tmp_path) == Containers()
