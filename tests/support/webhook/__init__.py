"""A webhook without a server: worlds to ask in few words, and what Go makes of the replies."""

from support.webhook import go
from support.webhook.asking import SCHEDULER, Asking, Known, Passing, at, body, names_of
from support.webhook.go import GoError

__all__ = ["SCHEDULER", "Asking", "GoError", "Known", "Passing", "at", "body", "go", "names_of"]
