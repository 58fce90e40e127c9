"""Writer of documents: each write names the version that it was decided on, and nothing is written over a newer one."""

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from fairlead.documents import Document, DocumentTooLargeError, Format
from fairlead.kube.errors import ClusterError, NotFoundError, RequestError
from fairlead.kube.http.client import Client
from fairlead.kube.resources import ObjectRef, decode_object

T = TypeVar("T")
_TOO_LARGE: Final = 413


class DocumentFaultError(ClusterError):
    """Document that is left alone, because it cannot be read or a newer version wrote it."""


async def write_document(
    client: Client,
    form: Format[T],
    before: Document[T],
    obj: Mapping[str, Any],
    at: ObjectRef,
    *,
    changes: Mapping[str, str | None] | None = None,
) -> Mapping[str, Any]:
    """Write an object in place of the version that was read of it, and return it.

    `changes`: the data to change, where the rest of the object may be others'; without it, the object is replaced.
    Raises ConflictError if the object was changed or created meanwhile, and DocumentFaultError if it is left alone;
    then nothing is written.
    """
    if before.fault:
        raise DocumentFaultError(before.fault)
    try:
        form.check_size(sum(len(key.encode()) + len(value.encode()) for key, value in obj["data"].items()))
    except DocumentTooLargeError as error:
        raise RequestError("update", at, str(error), status=_TOO_LARGE) from None
    annotations = {**obj["metadata"].get("annotations", {}), **form.annotations()}
    whole = {**obj, "metadata": {**obj["metadata"], "annotations": annotations}}
    version = {"resourceVersion": before.resource_version}
    try:
        if before.resource_version and changes is not None:
            patch = {"metadata": {**version, "annotations": annotations}, "data": changes}
            return await client.merge(at, patch, decode_object)
        if before.resource_version:
            return await client.replace(at, {**whole, "metadata": {**whole["metadata"], **version}}, decode_object)
    except NotFoundError:
        pass  # it was deleted, and is created again
    return await client.create(ObjectRef(at.resource, at.namespace), whole, decode_object)
