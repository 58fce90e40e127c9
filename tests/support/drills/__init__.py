"""Floods of the ports, an author of the worst policies, and the figures of the operator's replicas."""

from support.drills.author import NOTES, SCHEDULER, pod, tame, worst
from support.drills.figures import Figures, look, report, within_ms
from support.drills.flooder import Flooder, flooders

__all__ = (
    "NOTES",
    "SCHEDULER",
    "Figures",
    "Flooder",
    "flooders",
    "look",
    "pod",
    "report",
    "tame",
    "within_ms",
    "worst",
)
