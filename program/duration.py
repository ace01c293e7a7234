"""How long something takes or is ago, for people."""

_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def duration(seconds: float) -> str:
    """Write whole days, hours, minutes or seconds; none below 0, where a clock was set back."""
    passed = max(0.0, seconds)
    unit, length = next(((unit, length) for unit, length in _UNITS if passed >= length), _UNITS[-1])
    return f"{int(passed // length)} {unit}"
