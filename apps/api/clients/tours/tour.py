"""A tour of the API by the client that openapi-python-client makes."""

import os
from uuid import UUID

from bootfarm_client import AuthenticatedClient
from bootfarm_client.api.device import (
    device_create,
    device_get,
    device_list,
    device_remove,
    device_update,
    device_export,
)
from bootfarm_client.api.session import session_me
from bootfarm_client.models import ChangedObject, DeletedObject, Device, DeviceCreateBody, DevicePage
from bootfarm_client.models import DeviceUpdateBody, Problem, Session

client = AuthenticatedClient(base_url=os.environ["BOOTFARM_URL"] + "/api/v1", token=os.environ["BOOTFARM_KEY"])

session = session_me.sync(client=client)
assert isinstance(session, Session) and session.user.name == "API key tour", session

body = DeviceCreateBody(
    collection_id=UUID(os.environ["BOOTFARM_COLLECTION"]), name="tour-python", mac="02:bf:03:00:00:02"
)
created = device_create.sync(client=client, body=body, idempotency_key="tour-of-python")
assert isinstance(created, ChangedObject), created

read = device_get.sync_detailed(created.id, client=client)
assert isinstance(read.parsed, Device) and read.parsed.name == "tour-python", read
etag = read.headers["etag"]
assert device_get.sync_detailed(created.id, client=client, if_none_match=etag).status_code == 304

changed = device_update.sync(created.id, client=client, body=DeviceUpdateBody(enabled=False), if_match=etag)
assert isinstance(changed, ChangedObject) and changed.revision == 2, changed
stale = device_update.sync_detailed(created.id, client=client, body=DeviceUpdateBody(enabled=True), if_match=etag)
assert stale.status_code == 412 and isinstance(stale.parsed, Problem), stale
assert stale.parsed.code == "precondition_failed" and stale.parsed.revision == 2, stale

names = []
page = device_list.sync(client=client, limit=2)
while True:
    assert isinstance(page, DevicePage), page
    names += [device.name for device in page.items]
    if page.next_cursor is None:
        break
    page = device_list.sync(client=client, limit=2, cursor=page.next_cursor)
assert len(names) > 2 and len(set(names)) == len(names), names

exported = device_export.sync_detailed(client=client)
assert exported.status_code == 200 and b"tour-python" in exported.content, exported

removed = device_remove.sync(created.id, client=client, if_match='"2"')
assert isinstance(removed, DeletedObject) and removed.name == "tour-python", removed
gone = device_get.sync_detailed(created.id, client=client)
assert gone.status_code == 404 and isinstance(gone.parsed, Problem) and gone.parsed.code == "not_found", gone
print(f"seen {len(names)} devices")
