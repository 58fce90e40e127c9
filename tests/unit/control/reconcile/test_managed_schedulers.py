"""Record of the managed schedulers."""

import logging
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from fairlead.control.reconcile.managed_schedulers import (
    NAME,
    ManagedSchedulers,
    ManagedSchedulersSink,
    watch_managed_schedulers,
)
from fairlead.control.reconcile.object_client import ObjectClient
from fairlead.documents import FORMAT
from fairlead.kube.http.document_writer import DocumentFaultError
from scripted.loop import in_loop
from support.faults.api import Api
from support.faults.faults import Wire

KEY: Final = ("", "configmaps", "n", NAME)
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
OLD: Final = {"metadata": {"name": NAME}, "data": {"a": "2025-12-31T00:00:00+00:00"}}
"""As it was written before documents had a format."""


@in_loop
async def test_record_of_an_older_version_is_read_and_gets_a_format() -> None:
    api = Api(lambda: "2026-01-01T00:00:00Z")
    api.put(KEY, OLD)
    async with Wire(api).client() as client:
        managed = ManagedSchedulers(ObjectClient(client), "n")
        await managed.record("b", NOW)
        assert managed.existing == {"a", "b"}
    assert api.objects[KEY]["data"].keys() == {"a", "b"}
    assert api.objects[KEY]["metadata"]["annotations"] == {FORMAT: "1"}


@in_loop
async def test_edits_of_others_since_it_was_read_stay() -> None:
    api = Api(lambda: "2026-01-01T00:00:00Z")
    api.put(KEY, OLD)
    async with Wire(api).client() as client:
        managed = ManagedSchedulers(ObjectClient(client), "n")
        await managed.read()
        api.edit(KEY, data={"c": "2026-01-01T00:00:00+00:00", "a": None})
        await managed.record("b", NOW)
        assert managed.existing == {"b", "c"}
    assert api.objects[KEY]["data"].keys() == {"b", "c"}


@in_loop
async def test_record_of_a_newer_version_is_left_alone_and_reported() -> None:
    api = Api(lambda: "2026-01-01T00:00:00Z")
    newer = api.put(KEY, {**OLD, "metadata": {"name": NAME, "annotations": {FORMAT: "2"}}})
    async with Wire(api).client() as client:
        managed = ManagedSchedulers(ObjectClient(client), "n")
        for ask in (managed.read, lambda: managed.record("b", NOW)):
            with pytest.raises(DocumentFaultError, match="fairlead-schedulers, the record of managed schedulers"):
                await ask()
    assert api.objects[KEY] == newer


@in_loop
async def test_replica_keeps_the_names_that_it_could_read(caplog: pytest.LogCaptureFixture) -> None:
    sink, api = ManagedSchedulersSink(), Api(lambda: "2026-01-01T00:00:00Z")
    async with Wire(api).client() as client:
        decode = watch_managed_schedulers(client, "n", sink)._decode

        def put(obj: dict[str, Any]) -> None:
            sink.put(decode(msgspec.Raw(msgspec.json.encode(obj))))

        put(OLD)
        assert sink.names == {"a"}
        put({"metadata": {"name": NAME, "annotations": {FORMAT: "2"}}, "data": {"z": "?"}})
        assert sink.names == {"a"}
    assert [one.message for one in caplog.records if one.levelno >= logging.WARNING] == [
        "managed_schedulers.left_alone"
    ]
