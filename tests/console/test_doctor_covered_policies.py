"""`doctor` judges the volume of the policies only where a part reads `_cluster.yaml` from it."""

import pytest

from tests.console.stand_in import Object, StandIn
from tests.console.test_doctor import installed
from tests.console.test_doctor_cluster_file import Shown, found

_AT = "/etc/gpu-share/policies"
_PODS = "/api/v1/namespaces/gpu-share/pods"
_ELSEWHERE = ["mps and plugin and webhook read _cluster.yaml from elsewhere than the volume policies"]


def mount(path: str, *, of: str = "mine", **more: str) -> Object:
    return {"name": of, "mountPath": path, **more}


_POLICIES = mount(_AT, of="policies")


def mounting(*mounts: Object, **told: object) -> StandIn:
    """An installation whose parts that read policies have these *mounts*, and are *told* more."""
    on = installed()
    for one in on.lists[_PODS]:
        if one["spec"]["volumes"]:
            one["spec"]["containers"][0] |= {"volumeMounts": mounts, **told}
            one["spec"]["containers"].append({"name": "of-a-mesh", "volumeMounts": [mount("/etc")]})
    return on


@pytest.mark.parametrize(
    "mounts",
    [
        (_POLICIES, mount(f"{_AT}/_cluster.yaml", subPath="a")),
        (_POLICIES, mount("/etc/x/../gpu-share/policies/_cluster.yaml", subPath="a")),
        (_POLICIES, mount(f"/{_AT}/_cluster.yaml", subPath="a")),
        (_POLICIES, mount(f"{_AT[1:]}/_cluster.yaml", subPath="a")),
        (_POLICIES, mount(f"{_AT}/_cluster.yaml", of="policies", subPath="team.yaml")),
        (_POLICIES, mount(f"{_AT}/")),
        (mount(_AT, of="policies", subPath="team"),),
        (mount(_AT, of="policies", subPathExpr="$(TEAM)"),),
        (mount(_AT),),
        (mount(_AT), mount("/old", of="policies")),
        (mount("/etc/gpu-share", of="policies"),),
        (),
    ],
)
def test_a_file_that_is_not_read_from_the_volume_is_not_judged_by_it(shown: Shown, mounts: tuple[Object, ...]) -> None:
    assert found(shown, mounting(*mounts)) == ("unknown", _ELSEWHERE)


@pytest.mark.parametrize(
    "other", [f"{_AT}/team-vision.yaml", f"{_AT}-of-others", "/etc/gpu-share", "/etc/gpu-share/tls"]
)
def test_what_is_mounted_beside_the_file_or_above_the_volume_changes_nothing(shown: Shown, other: str) -> None:
    assert found(shown, mounting(_POLICIES, mount(other, subPath="a"))) == ("ok", [])


@pytest.mark.parametrize(
    "told",
    [
        {"env": [{"name": "GPU_SHARE_POLICIES", "value": "/mine"}]},
        {"args": ["--policies", "/mine/"]},
        {"command": ["gpu-share", "plugin", "--policies=/mine"], "env": [{"name": "GPU_SHARE_POLICIES", "value": _AT}]},
    ],
)
def test_the_file_is_where_the_program_is_told_to_read(shown: Shown, told: Object) -> None:
    assert found(shown, mounting(_POLICIES, **told)) == ("unknown", _ELSEWHERE)
    assert found(shown, mounting(mount("/mine", of="policies"), mount(_AT), **told)) == ("ok", [])
