"""existing."""


class Existing:
    cluster: str
