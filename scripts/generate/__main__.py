"""Writes all that is generated: `make crds`."""

from generate import (
    access,
    chart,
    commands,
    conditions,
    crds,
    examples,
    features,
    kubernetes_versions,
    kustomize,
    language_types,
    metrics,
    reference,
)

for each in (
    crds,
    kustomize,
    kubernetes_versions,
    language_types,
    features,
    reference,
    chart,
    access,
    commands,
    metrics,
    conditions,
    examples,
):
    each.write()
