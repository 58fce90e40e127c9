"""kind."""


class Kind:
    cluster: str
