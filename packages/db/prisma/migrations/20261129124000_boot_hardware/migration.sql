-- What lists of boots are filtered and sorted by: docs/decisions/0113-lists-by-hardware.md.
-- The UTC hour of its start.
ALTER TABLE boot ADD COLUMN hour SMALLINT;
ALTER TABLE boot ADD COLUMN hardware_model TEXT;
ALTER TABLE boot ADD COLUMN edge_release TEXT;
-- not expand-only: the API of the release before never reads it; boots that it reports during the exchange have none
UPDATE boot SET hour = extract(hour FROM started_at AT TIME ZONE 'UTC');
-- not expand-only: PostgreSQL builds no index concurrently on a partitioned table; edges keep their reports and send them again
CREATE INDEX ON boot (organization_id, hour);
-- not expand-only: the same
CREATE INDEX ON boot (organization_id, processors);
-- not expand-only: the same
CREATE INDEX ON boot (organization_id, memory_mib);
-- not expand-only: the same
CREATE INDEX ON boot (organization_id, network_card);
-- not expand-only: the same
CREATE INDEX ON boot (organization_id, storage);
-- not expand-only: the same
CREATE INDEX ON boot (organization_id, hardware_model);
-- not expand-only: the same
CREATE INDEX ON boot (organization_id, edge_release);
-- not expand-only: the same
CREATE INDEX ON boot (organization_id, segment);

-- Failed boots of a collection by cause, or silent ones (`silent`), by the hour in which they started: apps/api/src/alert.
CREATE TABLE collection_cause_hour (
  organization_id UUID,
  collection_id UUID,
  cause TEXT,
  hour TIMESTAMPTZ(3),
  boots INTEGER NOT NULL,
  PRIMARY KEY (organization_id, collection_id, cause, hour),
  FOREIGN KEY (organization_id, collection_id) REFERENCES collection ON UPDATE CASCADE ON DELETE CASCADE
) WITH (fillfactor = 70);
CREATE INDEX ON collection_cause_hour (organization_id, hour);
SELECT protect_tenant_table('collection_cause_hour');

-- not expand-only: adds a figure to open alerts and takes none away
UPDATE alert SET figures = figures || jsonb_build_object('placeBoots', figures -> 'siteBoots') WHERE kind = 'failures';
