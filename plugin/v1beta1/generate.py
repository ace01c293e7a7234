"""
Write the stubs from api.proto: `python -m plugin.v1beta1.generate`, or compare them with `--check`.

The generated `api_pb2_grpc.pyi` is ours: the gRPC generator writes no types.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet, ServiceDescriptorProto
from grpc_tools import protoc

_FOLDER = Path(__file__).parent
_ROOT = _FOLDER.parents[1]
_SOURCE = "plugin/v1beta1/api.proto"  # relative to the root, so that the stubs import plugin.v1beta1
_PREAMBLE = '''\
"""Types of the generated gRPC stubs. DO NOT EDIT: python -m plugin.v1beta1.generate"""

from collections.abc import Iterator

import grpc

from plugin.v1beta1 import api_pb2
'''


def main(arguments: list[str]) -> int:
    """Write or compare the stubs; 0 if they are up to date afterwards, 1 if not, 2 for bad usage."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m plugin.v1beta1.generate [--check]\n")
        return 2
    wanted = generated_files()
    stale = sorted(name for name, text in wanted.items() if _text(_FOLDER / name) != text)
    if not arguments:
        for name in stale:
            (_FOLDER / name).write_text(wanted[name], encoding="utf-8")
        return 0
    if stale:
        sys.stderr.write(f"{', '.join(stale)} differ from api.proto: run python -m plugin.v1beta1.generate\n")
    return int(bool(stale))


def generated_files() -> dict[str, str]:
    """
    Run the generators in a folder of their own.

    Returns:
        File name to text, for every generated file.

    Raises:
        RuntimeError: If api.proto does not compile; the compiler has then printed why.
    """
    with TemporaryDirectory() as name:
        outputs = [f"--{kind}_out={name}" for kind in ("python", "pyi", "grpc_python")]
        descriptors = Path(name) / "descriptors"
        options = ["protoc", f"-I{_ROOT}", *outputs, f"--descriptor_set_out={descriptors}", _SOURCE]
        if protoc.main(options):
            raise RuntimeError("api.proto does not compile")
        files = {path.name: path.read_text(encoding="utf-8") for path in Path(name).rglob("api_pb2*")}
        (api,) = FileDescriptorSet.FromString(descriptors.read_bytes()).file
    return {**files, "api_pb2_grpc.pyi": _grpc_types(api)}


def _grpc_types(api: FileDescriptorProto) -> str:
    return _PREAMBLE + "".join(_stub(service) + _servicer(service) for service in api.service)


def _stub(service: ServiceDescriptorProto) -> str:
    lines = [f"class {service.name}Stub:", "    def __init__(self, channel: grpc.Channel) -> None: ..."]
    for method in service.method:
        call = "UnaryStreamMultiCallable" if method.server_streaming else "UnaryUnaryMultiCallable"
        request, response = _python(method.input_type), _python(method.output_type)
        lines.append(f"    {method.name}: grpc.{call}[{request}, {response}]")
    return "\n" + "\n".join(lines) + "\n"


def _servicer(service: ServiceDescriptorProto) -> str:
    name = f"{service.name}Servicer"
    lines = [f"class {name}:"]
    for method in service.method:
        request, response = _python(method.input_type), _python(method.output_type)
        answer = f"Iterator[{response}]" if method.server_streaming else response
        context = "context: grpc.ServicerContext"
        lines.append(f"    def {method.name}(self, request: {request}, {context}) -> {answer}: ...")
    lines.append("")
    lines.append(f"def add_{name}_to_server(servicer: {name}, server: grpc.Server) -> None: ...")
    return "\n" + "\n".join(lines) + "\n"


def _python(type_name: str) -> str:
    return "api_pb2." + type_name.rpartition(".")[2]


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
