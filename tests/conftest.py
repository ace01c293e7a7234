from hypothesis import settings

# How long one example takes says how busy the machine is.
settings.register_profile("gpu-share", deadline=None)
settings.load_profile("gpu-share")

_LONGEST_NAME = 100


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name a long text by its argument: each process of a run keeps the names of all tests, and sends them."""
    return argname if isinstance(val, str | bytes) and len(val) > _LONGEST_NAME else None
