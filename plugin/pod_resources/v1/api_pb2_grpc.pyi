"""Types of the generated gRPC stubs. DO NOT EDIT: python -m tests.plugin.stubs"""

import grpc

from plugin.pod_resources.v1 import api_pb2

class PodResourcesListerStub:
    def __init__(self, channel: grpc.Channel) -> None: ...
    List: grpc.UnaryUnaryMultiCallable[api_pb2.ListPodResourcesRequest, api_pb2.ListPodResourcesResponse]

class PodResourcesListerServicer:
    def List(self, request: api_pb2.ListPodResourcesRequest, context: grpc.ServicerContext) -> api_pb2.ListPodResourcesResponse: ...

def add_PodResourcesListerServicer_to_server(servicer: PodResourcesListerServicer, server: grpc.Server) -> None: ...
