"""Times as they are given to options."""


def seconds(option: str, text: str, least: float = 0.0) -> float:
    """Such as 800ms. Raises ValueError."""
    from fairlead.cel.errors import CelError
    from fairlead.cel.functions.timetext import string_to_duration

    try:
        found = string_to_duration(text) / 1e9
    except CelError:
        found = -1.0
    if found < 0:
        raise ValueError(f"{option} {text!r} is no time such as 800ms, 5s or 1m")
    if found < least:
        raise ValueError(f"{option} {text} is less than {least * 1000:.0f}ms")
    return found
