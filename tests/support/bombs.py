"""Short YAML that stands for more values than any machine can hold."""


def merging_maps(doublings: int) -> str:
    """Return a map, and maps that each merge the one above twice."""
    lines = [f"a{at}: &a{at} {{<<: [*a{at - 1}, *a{at - 1}]}}" for at in range(1, doublings + 1)]
    return "\n".join(["a0: &a0 {k: 1}", *lines])


def doubling_lists(doublings: int) -> str:
    """Return a list, and lists that each hold the one above twice."""
    lines = [f"a{at}: &a{at} [*a{at - 1}, *a{at - 1}]" for at in range(1, doublings + 1)]
    return "\n".join(["a0: &a0 [1]", *lines])
