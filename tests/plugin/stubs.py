"""
Write the stubs of the kubelet's protocols from their api.proto: `python -m tests.plugin.stubs`, or `--check` them.

The generated `api_pb2_grpc.pyi` is ours: the gRPC generator writes no types.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet, ServiceDescriptorProto
from grpc_tools import protoc

_ROOT = Path(__file__).parents[2]
_DIRECTORYS = (
    "plugin/device_plugin/v1beta1",
    "plugin/pod_resources/v1",
    "plugin/dra/v1",
    "plugin/dra/v1alpha1",
    "plugin/dra/registration_v1",
)  # relative to the root, as the stubs import them
_COMMAND = "python -m tests.plugin.stubs"


def main(arguments: list[str], *, into: Path = _ROOT) -> int:
    """Write or compare the stubs below *into*; 0 if they are up to date afterwards, 1 if not, 2 for bad usage."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write(f"usage: {_COMMAND} [--check]\n")
        return 2
    wanted = generated_files()
    stale = sorted(name for name, text in wanted.items() if _text(into / name) != text)
    if not arguments:
        for name in stale:
            (into / name).write_text(wanted[name], encoding="utf-8")
        return 0
    if stale:
        sys.stderr.write(f"{', '.join(stale)} differ from api.proto: run {_COMMAND}\n")
    return int(bool(stale))


def generated_files() -> dict[str, str]:
    """
    Run the generators in a directory of their own.

    Returns:
        Path relative to the root to text, for every generated file.

    Raises:
        RuntimeError: If an api.proto does not compile; the compiler has then printed why.
    """
    return {name: text for directory in _DIRECTORYS for name, text in _generated(directory).items()}


def _generated(directory: str) -> dict[str, str]:
    with TemporaryDirectory() as name:
        outputs = [f"--{kind}_out={name}" for kind in ("python", "pyi", "grpc_python")]
        descriptors = Path(name) / "descriptors"
        options = ["protoc", f"-I{_ROOT}", *outputs, f"--descriptor_set_out={descriptors}", f"{directory}/api.proto"]
        if protoc.main(options):
            raise RuntimeError(f"{directory}/api.proto does not compile")
        files = {f"{directory}/{path.name}": path.read_text(encoding="utf-8") for path in Path(name).rglob("api_pb2*")}
        (api,) = FileDescriptorSet.FromString(descriptors.read_bytes()).file
    return {**files, f"{directory}/api_pb2_grpc.pyi": _grpc_types(api, package=directory.replace("/", "."))}


def _grpc_types(api: FileDescriptorProto, *, package: str) -> str:
    return _preamble(api, package=package) + "".join(_stub(service) + _servicer(service) for service in api.service)


def _preamble(api: FileDescriptorProto, *, package: str) -> str:
    streams = any(method.server_streaming for service in api.service for method in service.method)
    iterator = "from collections.abc import Iterator\n\n" if streams else ""
    return (
        f'"""Types of the generated gRPC stubs. DO NOT EDIT: {_COMMAND}"""\n\n'
        f"{iterator}import grpc\n\nfrom {package} import api_pb2\n"
    )


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
