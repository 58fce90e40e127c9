"""An extender for tests: it records what a real kube-scheduler asks it, and answers as a test tells it to."""

from extender.recorder import Call, Recorder, nodes_of
from extender.replies import Answer, Reply
from extender.scene import Scene
from extender.stage import Stage

__all__ = ["Answer", "Call", "Recorder", "Reply", "Scene", "Stage", "nodes_of"]
