"""The part of NVML that compute modes need."""


class FakeNvmlError(Exception):
    def __init__(self, value: int, text: str) -> None:
        super().__init__(text)
        self.value = value


class FakeModes:
    """GPUs with their compute modes, by UUID."""

    NVMLError: type[Exception] = FakeNvmlError

    def __init__(self, modes: dict[str, int]) -> None:
        self.modes = modes
        self.refuses: dict[str, FakeNvmlError] = {}  # to set a mode, by UUID
        self.ignores: set[str] = set()  # UUIDs for which a mode can be set without effect
        self.down: FakeNvmlError | None = None
        self.sessions = 0
        self.written: list[tuple[str, int]] = []

    def nvmlInit(self) -> None:  # noqa: N802
        if self.down:
            raise self.down
        self.sessions += 1

    def nvmlShutdown(self) -> None:  # noqa: N802
        self.sessions -= 1

    def nvmlDeviceGetHandleByUUID(self, uuid: str, /) -> str:  # noqa: N802
        assert self.sessions
        if uuid not in self.modes:
            raise FakeNvmlError(6, "Not Found")
        return uuid

    def nvmlDeviceGetComputeMode(self, handle: str, /) -> int:  # noqa: N802
        assert self.sessions
        return self.modes[handle]

    def nvmlDeviceSetComputeMode(self, handle: str, mode: int, /) -> None:  # noqa: N802
        assert self.sessions
        if handle in self.refuses:
            raise self.refuses[handle]
        if handle not in self.ignores:
            self.modes[handle] = mode
        self.written.append((handle, mode))
