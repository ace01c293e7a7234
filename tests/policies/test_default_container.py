"""Which container the bare annotation means: where the pod names one, where it does not, and after a grant."""

import json
from typing import Any

import pytest

from policies.contract import DEFAULT_CONTAINER_ANNOTATION, GRANT_ANNOTATION
from tests.policies.pods import container, denied, granted, limited, mutated, pod, policies, vgpus

TWO = (container("web"), container("sidecar"))
PROXY = container("proxy")
STAYS = 'the share stays with container "web", to which it was granted, and not with "%s" of ' + (
    DEFAULT_CONTAINER_ANNOTATION
)


def inserted(on: dict[str, Any], index: int, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """A granted pod into which a later webhook put a container, and wrote annotations."""
    after = mutated(on)
    after["spec"]["containers"].insert(index, PROXY)
    after["metadata"]["annotations"] |= annotations or {}
    return after


def with_grant(on: dict[str, Any], text: str) -> dict[str, Any]:
    on["metadata"]["annotations"][GRANT_ANNOTATION] = text
    return on


def grant(**shares: str) -> str:
    return json.dumps({"containers": {name: {"vgpus": 9, "share": share} for name, share in shares.items()}})


@pytest.mark.parametrize("key", ["gpu-share", "gpu-share.dev/share"])
def test_several_containers_and_none_named_get_a_warning_that_says_which_it_is(key: str) -> None:
    (said,) = granted(pod(None, *TWO, annotations={key: "0.2"})).warnings
    assert said == f'the share is for container "web": the annotation {DEFAULT_CONTAINER_ANNOTATION} can name another'


def test_the_alias_beside_the_annotation_is_not_warned_of_twice() -> None:
    assert len(granted(pod("0.2", *TWO, annotations={"gpu-share.dev/share": "0.2"})).warnings) == 1


@pytest.mark.parametrize(
    "on",
    [
        pod("0.2"),
        pod("0.2", initContainers=[container("setup")]),
        pod("0.2", *TWO, annotations={DEFAULT_CONTAINER_ANNOTATION: "sidecar"}),
        pod(None, *TWO, annotations={"container.gpu-share.dev/web": "0.2"}),
        pod(None, limited("web"), container("sidecar")),
    ],
)
def test_where_there_is_no_choice_there_is_no_warning(on: dict[str, Any]) -> None:
    assert granted(on).warnings == ()


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("share", ["0.2", "20%", "0.25", "1"])
def test_a_container_that_another_webhook_inserts_does_not_get_the_share(index: int, share: str) -> None:
    on = inserted(pod(share), index)
    assert vgpus(granted(on)) == vgpus(granted(pod(share)))


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_share_stays_where_the_pods_own_annotation_put_it(index: int) -> None:
    on = inserted(pod("0.2", *TWO, annotations={DEFAULT_CONTAINER_ANNOTATION: "sidecar"}), index)
    assert vgpus(granted(on)) == {"sidecar": 2}
    assert granted(on).warnings == ()


def test_a_share_stays_where_it_was_granted_when_another_webhook_names_its_own_container() -> None:
    on = inserted(pod("0.2", container("web")), 0, {DEFAULT_CONTAINER_ANNOTATION: "proxy"})
    assert vgpus(granted(on)) == {"web": 2}
    assert granted(on).warnings == (STAYS % "proxy",)


def test_a_share_of_an_init_container_stays_there() -> None:
    named = {DEFAULT_CONTAINER_ANNOTATION: "setup"}
    on = inserted(pod("0.2", initContainers=[container("setup")], annotations=named), 0)
    del on["metadata"]["annotations"][DEFAULT_CONTAINER_ANNOTATION]
    assert vgpus(granted(on)) == {"setup": 2}


def test_a_share_stays_where_another_container_has_as_much_by_a_limit() -> None:
    assert vgpus(granted(inserted(pod("0.2", container("web"), limited("b", 2)), 0))) == {"web": 2, "b": 2}
    assert vgpus(granted(inserted(pod("0.2", container("web"), limited("b", 3)), 0))) == {"web": 2, "b": 3}


FORGED = [
    grant(sidecar="0.2"),  # sidecar has no limit, so nothing was granted to it
    grant(sidecar="0.9", web="0.9"),
    grant(gone="0.2"),
    grant(),
    "",
    "0.2",
    "null",
    "{",
    '{"containers": []}',
    '{"containers": {"sidecar": 5}}',
    '{"containers": {"sidecar": {"share": 0.2}}}',
    "[" * 100_000,
    "\ud800",
]


@pytest.mark.parametrize("text", FORGED)
def test_a_grant_that_the_limits_do_not_bear_out_changes_nothing(text: str) -> None:
    assert vgpus(granted(with_grant(pod("0.2", *TWO), text))) == {"web": 2}


@pytest.mark.parametrize("text", FORGED)
def test_a_forged_grant_does_not_beat_the_container_that_the_pod_names(text: str) -> None:
    on = pod("0.2", *TWO, annotations={DEFAULT_CONTAINER_ANNOTATION: "sidecar"})
    assert vgpus(granted(with_grant(on, text))) == {"sidecar": 2}


def test_a_forged_grant_can_only_choose_among_containers_that_ask_for_as_much_themselves() -> None:
    on = with_grant(pod("0.2", container("web"), limited("sidecar", 2)), grant(sidecar="0.2"))
    assert vgpus(granted(on)) == {"sidecar": 2}  # web asks for nothing of its own, and gets nothing
    more = with_grant(pod("0.2", container("web"), limited("sidecar", 5)), grant(sidecar="0.2"))
    assert denied(more).code == "ConflictingRequest"


def test_a_forged_grant_does_not_hide_a_share_from_the_sum_of_the_pod() -> None:
    by = policies("share: {maximum: '0.5', podMaximum: '0.5'}")
    on = with_grant(pod("0.3", limited("web", 3), limited("sidecar", 3)), grant(sidecar="0.3"))
    assert denied(on, by).code == "PodShareAboveMaximum"
    assert denied(with_grant(pod("0.9", *TWO), grant(sidecar="0.1")), by).code == "ShareAboveMaximum"


def test_whole_gpus_stay_where_they_were_granted() -> None:
    by = policies("share: {whole: gpus, maximum: '8', podMaximum: '8'}")
    after = mutated(pod("2"), by)
    after["spec"]["containers"].insert(0, PROXY)
    assert vgpus(granted(after, by)) == {"main": 2}
