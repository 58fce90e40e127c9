"""The custom resource as types, and the CRD generated from them. Imports nothing else of this project."""

from fairlead.api.errors import FieldError, FieldPath, InvalidObjectError, render_path
from fairlead.api.params import DataName, FieldCheck, Listed, Params, data_names, exactly_one_of
from fairlead.api.parse import parse_params, parse_policy
from fairlead.api.selectors import LabelSelector
from fairlead.api.status import Status
from fairlead.api.v1alpha1 import SchedulerExtenderPolicy, Spec, policy_model
from fairlead.api.values import Duration, within

__all__ = [
    "DataName",
    "Duration",
    "FieldCheck",
    "FieldError",
    "FieldPath",
    "InvalidObjectError",
    "LabelSelector",
    "Listed",
    "Params",
    "SchedulerExtenderPolicy",
    "Spec",
    "Status",
    "data_names",
    "exactly_one_of",
    "parse_params",
    "parse_policy",
    "policy_model",
    "render_path",
    "within",
]
