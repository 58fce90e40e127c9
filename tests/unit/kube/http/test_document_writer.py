"""Documents as they are written: never over another version than the one that was read."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from fairlead.documents import FORMAT, Document, Format
from fairlead.kube.errors import ConflictError, RequestError
from fairlead.kube.http.document_writer import DocumentFaultError, write_document
from fairlead.kube.resources import ObjectRef, Resource
from scripted.loop import in_loop
from support.faults.api import Api
from support.faults.faults import Wire

AT: Final = ObjectRef(Resource("", "v1", "configmaps"), "n", "x")
KEY: Final = ("", "configmaps", "n", "x")
FORM: Final[Format[dict[str, str]]] = Format("some text", dict, "delete it", bytes_max=100)
NONE: Final[Document[dict[str, str]]] = Document()


def obj(**data: str) -> dict[str, Any]:
    metadata = {"name": "x", "namespace": "n", "labels": {"a": "b"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


class Ground:
    def __init__(self) -> None:
        self.api = Api(lambda: "2026-01-01T00:00:00Z")
        self.wire = Wire(self.api)

    @property
    def data(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.api.objects[KEY]["data"]
        return found

    def read(self) -> Document[dict[str, str]]:
        return FORM.read(self.api.objects.get(KEY))

    async def write(
        self, before: Document[dict[str, str]], changes: Mapping[str, str | None] | None = None, **data: str
    ) -> Mapping[str, Any]:
        async with self.wire.client() as client:
            return await write_document(client, FORM, before, obj(**data), AT, changes=changes)


@in_loop
async def test_document_is_created_replaced_and_changed_with_its_format() -> None:
    one = Ground()
    made = await one.write(NONE, k="1")
    assert (one.data, made["metadata"]["annotations"], made["metadata"]["labels"]) == (
        {"k": "1"},
        {FORMAT: "1"},
        {"a": "b"},
    )
    await one.write(one.read(), k="2")
    assert one.data == {"k": "2"}
    one.api.edit(KEY, data={"of another": "3"})
    await one.write(one.read(), {"k": None, "l": "4"}, l="4")
    assert one.data == {"of another": "3", "l": "4"}, "what others have written stays"


@pytest.mark.parametrize("changes", [None, {"k": "2"}])
@in_loop
async def test_nothing_is_written_over_a_version_that_was_not_read(changes: Mapping[str, str] | None) -> None:
    one = Ground()
    await one.write(NONE, k="1")
    before = one.read()
    one.api.edit(KEY, data={"k": "of another"})
    for stale in (before, NONE):
        with pytest.raises(ConflictError):
            await one.write(stale, changes, k="2")
    assert one.data == {"k": "of another"}
    await one.write(one.read(), changes, k="2")
    assert one.data == {"k": "2"}


@in_loop
async def test_document_that_was_deleted_is_created_again() -> None:
    one = Ground()
    await one.write(NONE, k="1", l="2")
    before = one.read()
    one.api.delete(KEY)
    await one.write(before, {"k": "3"}, k="3", l="2")
    assert one.data == {"k": "3", "l": "2"}


@in_loop
async def test_document_of_a_newer_version_is_left_alone() -> None:
    one = Ground()
    await one.write(NONE, k="1")
    one.api.edit(KEY, metadata={"annotations": {FORMAT: "2"}})
    with pytest.raises(DocumentFaultError, match="ConfigMap x, some text, has format '2'"):
        await one.write(one.read(), k="2")
    assert one.data == {"k": "1"}


@in_loop
async def test_document_that_is_too_large_is_not_sent() -> None:
    one = Ground()
    with pytest.raises(RequestError, match="some text: 101 bytes, and the API server takes 100"):
        await one.write(NONE, k="x" * 100)
    assert one.wire.writes == []
