"""
A CUDA program for the tests on a real GPU, over the driver's library alone: `python client.py ACTION [NUMBER]...`.

Every action ends with one JSON object on stdout; `error` in it is a CUDA error number (0 for none).
"""

import ctypes
import json
import sys
import time
from collections.abc import Callable
from typing import Any

_MIB = 1024 * 1024
_CHUNK_MIB = 64
_MULTIPROCESSORS = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_ATTACH_GLOBAL = 1  # CU_MEM_ATTACH_GLOBAL
_THREADS = 256  # of a block that multiplies
_TIMES = 50_000  # that each of them does so in a launch, by four

_PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 cycles)
{
    .reg .u64 %r<4>;
    .reg .pred %p;
    ld.param.u64 %r1, [cycles];
    mov.u64 %r2, %clock64;
again:
    mov.u64 %r3, %clock64;
    sub.u64 %r3, %r3, %r2;
    setp.lt.u64 %p, %r3, %r1;
    @%p bra again;
    ret;
}
.visible .entry fault()
{
    .reg .u64 %r<2>;
    .reg .u32 %v<2>;
    mov.u64 %r1, 0;
    mov.u32 %v1, 1;
    st.global.u32 [%r1], %v1;
    ret;
}
.visible .entry multiply(.param .u64 times, .param .u64 results)
{
    .reg .u64 %r<6>;
    .reg .u32 %v<4>;
    .reg .f32 %f<7>;
    .reg .pred %p;
    ld.param.u64 %r1, [times];
    ld.param.u64 %r2, [results];
    mov.u64 %r3, 0;
    mov.f32 %f1, 0f3F800000;
    mov.f32 %f2, 0f3F800001;
    mov.f32 %f3, 0f3F800002;
    mov.f32 %f4, 0f3F800003;
    mov.f32 %f5, 0f3F7FFFFF;
    mov.f32 %f6, 0f33800000;
again:
    fma.rn.f32 %f1, %f1, %f5, %f6;
    fma.rn.f32 %f2, %f2, %f5, %f6;
    fma.rn.f32 %f3, %f3, %f5, %f6;
    fma.rn.f32 %f4, %f4, %f5, %f6;
    add.u64 %r3, %r3, 1;
    setp.lt.u64 %p, %r3, %r1;
    @%p bra again;
    add.f32 %f1, %f1, %f2;
    add.f32 %f3, %f3, %f4;
    add.f32 %f1, %f1, %f3;
    mov.u32 %v1, %ctaid.x;
    mov.u32 %v2, %ntid.x;
    mov.u32 %v3, %tid.x;
    mad.lo.u32 %v1, %v1, %v2, %v3;
    mul.wide.u32 %r4, %v1, 4;
    add.u64 %r5, %r2, %r4;
    st.global.f32 [%r5], %f1;
    ret;
}
"""


class CudaError(Exception):
    def __init__(self, call: str, number: int) -> None:
        super().__init__(f"{call} gave {number}")
        self.call = call
        self.number = number


class Cuda:
    """The first visible GPU, with its primary context."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        device = ctypes.c_int()
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self._device = device

    def call(self, name: str, *arguments: Any) -> None:
        number = getattr(self._library, name)(*arguments)
        if number:
            raise CudaError(name, number)

    def info(self) -> dict[str, int]:
        free, total, whole = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t()
        multiprocessors = ctypes.c_int()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        self.call("cuDeviceTotalMem_v2", ctypes.byref(whole), self._device)
        self.call("cuDeviceGetAttribute", ctypes.byref(multiprocessors), _MULTIPROCESSORS, self._device)
        return {
            "free_mib": free.value // _MIB,
            "total_mib": total.value // _MIB,
            "property_mib": whole.value // _MIB,
            "multiprocessors": multiprocessors.value,
        }

    def allocate(self) -> None:
        self.call("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(_CHUNK_MIB * _MIB))

    def allocate_managed(self) -> None:
        pointer = ctypes.c_uint64()
        size = ctypes.c_size_t(_CHUNK_MIB * _MIB)
        self.call("cuMemAllocManaged", ctypes.byref(pointer), size, _ATTACH_GLOBAL)
        self.call("cuMemsetD8_v2", pointer, ctypes.c_ubyte(1), size)
        self.synchronize()

    def allocate_async(self) -> None:
        self.call("cuMemAllocAsync", ctypes.byref(ctypes.c_uint64()), ctypes.c_size_t(_CHUNK_MIB * _MIB), None)
        self.call("cuStreamSynchronize", None)

    def kernel(self, name: bytes) -> ctypes.c_void_p:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), _PTX)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name)
        return function

    def launch(self, kernel: ctypes.c_void_p, *values: int, blocks: int = 1, threads: int = 1) -> None:
        held = [ctypes.c_uint64(value) for value in values]
        addresses = (ctypes.c_void_p * max(1, len(held)))(*(ctypes.addressof(one) for one in held))
        arguments = addresses if held else None
        self.call("cuLaunchKernel", kernel, blocks, 1, 1, threads, 1, 1, 0, None, arguments, None)

    def synchronize(self) -> None:
        self.call("cuCtxSynchronize")


def _fill(allocate: Callable[[], None], most_mib: int) -> dict[str, int]:
    """Allocate until it fails or *most_mib* are there."""
    mib = 0
    while mib < most_mib:
        try:
            allocate()
        except CudaError as error:
            return {"allocated_mib": mib, "error": error.number}
        mib += _CHUNK_MIB
    return {"allocated_mib": mib, "error": 0}


def _work(cuda: Cuda, runs: int, blocks: int, launches: int) -> dict[str, Any]:
    """Multiply again and again, as a server would: each launch is waited for; begins with a line on stdin."""
    results = ctypes.c_uint64()
    cuda.call("cuMemAlloc_v2", ctypes.byref(results), ctypes.c_size_t(blocks * _THREADS * 4))
    kernel = cuda.kernel(b"multiply")

    def run() -> float:
        began = time.monotonic()
        for _ in range(launches):
            cuda.launch(kernel, _TIMES, results.value, blocks=blocks, threads=_THREADS)
            cuda.synchronize()
        return time.monotonic() - began

    run()  # what is loaded and set up at first
    _say_that_it_runs()
    sys.stdin.readline()
    began = time.monotonic()
    seconds = [run() for _ in range(runs)]
    return {"seconds": seconds, "began": began, "ended": time.monotonic(), "error": 0}


def _say_that_it_runs() -> None:
    sys.stdout.write('{"running": true}\n')
    sys.stdout.flush()


def _act(action: str, number: int, more: list[int]) -> dict[str, Any]:
    cuda = Cuda()
    match action:
        case "info":
            return {**cuda.info(), "error": 0}
        case "allocate":
            return _fill(cuda.allocate, number)
        case "allocate-managed":
            return _fill(cuda.allocate_managed, number)
        case "allocate-async":
            return _fill(cuda.allocate_async, number)
        case "spin":  # for that many seconds, at about 2 GHz; says so once it runs
            cuda.launch(cuda.kernel(b"spin"), number * 2_000_000_000)
            _say_that_it_runs()
            cuda.synchronize()
            return {"error": 0}
        case "hold":  # a context, until stdin ends; then asks whether it is still good
            _say_that_it_runs()
            sys.stdin.read()
            cuda.allocate()
            cuda.synchronize()
            return {"error": 0}
        case "fault":
            cuda.launch(cuda.kernel(b"fault"))
            time.sleep(0.1)
            cuda.synchronize()
            return {"error": 0}
        case "work":  # RUNS BLOCKS LAUNCHES
            return _work(cuda, number, *more)
        case _:
            raise ValueError(action)


if __name__ == "__main__":
    try:
        first, *others = [int(text) for text in sys.argv[2:]] or [0]
        answer = _act(sys.argv[1], first, others)
    except CudaError as failure:
        answer = {"error": failure.number, "call": failure.call}
    sys.stdout.write(json.dumps(answer) + "\n")
