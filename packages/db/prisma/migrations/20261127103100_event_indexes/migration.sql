-- outside of a transaction
-- Only events with a number are in these, so that whoever writes an event maintains none of them.
CREATE UNIQUE INDEX CONCURRENTLY webhook_event_number ON webhook_event (organization_id, number) WHERE number IS NOT NULL;
CREATE INDEX CONCURRENTLY webhook_event_type ON webhook_event (organization_id, type, number) WHERE number IS NOT NULL;
CREATE INDEX CONCURRENTLY webhook_event_farm ON webhook_event (organization_id, farm_id, number)
  WHERE number IS NOT NULL AND farm_id IS NOT NULL;
CREATE INDEX CONCURRENTLY webhook_event_site ON webhook_event (organization_id, site_id, number)
  WHERE number IS NOT NULL AND site_id IS NOT NULL;
CREATE INDEX CONCURRENTLY webhook_event_collection ON webhook_event (organization_id, collection_id, number)
  WHERE number IS NOT NULL AND collection_id IS NOT NULL;
CREATE INDEX CONCURRENTLY webhook_event_device ON webhook_event (organization_id, device_id, number)
  WHERE number IS NOT NULL AND device_id IS NOT NULL;
CREATE INDEX CONCURRENTLY webhook_event_edge ON webhook_event (organization_id, edge_id, number)
  WHERE number IS NOT NULL AND edge_id IS NOT NULL;
CREATE INDEX CONCURRENTLY webhook_event_vdisk ON webhook_event (organization_id, vdisk_id, number)
  WHERE number IS NOT NULL AND vdisk_id IS NOT NULL;
-- Events that wait for their number.
CREATE INDEX CONCURRENTLY webhook_event_unnumbered ON webhook_event (organization_id, created_at, id)
  WHERE number IS NULL AND type <> 'ping';
