"""Calls as a kubelet makes them, of several claims at once and by either version of the protocol."""

from pathlib import Path

import grpc
import pytest

from plugin.dra.v1 import api_pb2
from plugin.sockets import target
from tests.plugin.dra.node import DraNode, share

GONE = api_pb2.Claim(namespace="default", name="gone", uid="0000")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_each_claim_of_a_call_is_answered_and_one_that_fails_fails_alone(node: DraNode, version: str) -> None:
    node.start()
    claims = [node.schedule(name, share(200))["metadata"] for name in ("a", "b")]
    asked = [api_pb2.Claim(namespace=one["namespace"], name=one["name"], uid=one["uid"]) for one in claims]
    assert node.kubelet.info is not None
    service = f"/k8s.io.kubelet.pkg.apis.dra.{version}.DRAPlugin"
    with grpc.insecure_channel(target(Path(node.kubelet.info.endpoint))) as channel:
        prepare = channel.unary_unary(
            f"{service}/NodePrepareResources",
            request_serializer=api_pb2.NodePrepareResourcesRequest.SerializeToString,
            response_deserializer=api_pb2.NodePrepareResourcesResponse.FromString,
        )
        answer = prepare(api_pb2.NodePrepareResourcesRequest(claims=[*asked, GONE]), timeout=30)
        assert answer.claims.keys() == {"0000", *(one.uid for one in asked)}
        assert all(answer.claims[one.uid].devices and not answer.claims[one.uid].error for one in asked)
        assert answer.claims["0000"].error
        unprepare = channel.unary_unary(
            f"{service}/NodeUnprepareResources",
            request_serializer=api_pb2.NodeUnprepareResourcesRequest.SerializeToString,
            response_deserializer=api_pb2.NodeUnprepareResourcesResponse.FromString,
        )
        done = unprepare(api_pb2.NodeUnprepareResourcesRequest(claims=[*asked, GONE]), timeout=30)
        assert done.claims.keys() == answer.claims.keys()
        assert not any(one.error for one in done.claims.values())
