"""Hours without growth: what happens when, what is measured meanwhile, and the judgement of it."""

from support.soak.judgement import KEPT_PODS, Finding, Observed, judge
from support.soak.processes import FOLLOWER, LEADER, Life, ProcessSample, lives
from support.soak.report import as_json, as_table
from support.soak.schedule import Disturbance, Schedule, schedule

__all__ = [
    "FOLLOWER",
    "KEPT_PODS",
    "LEADER",
    "Disturbance",
    "Finding",
    "Life",
    "Observed",
    "ProcessSample",
    "Schedule",
    "as_json",
    "as_table",
    "judge",
    "lives",
    "schedule",
]
