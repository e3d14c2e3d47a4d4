-- outside of a transaction
-- The orders of long lists: apps/api/src/rules/list-sort.ts.
CREATE INDEX CONCURRENTLY device_organization_id_created_at_id_idx ON device (organization_id, created_at, id);
CREATE INDEX CONCURRENTLY device_organization_id_last_boot_started_at_id_idx
  ON device (organization_id, last_boot_started_at DESC NULLS LAST, id DESC);
CREATE INDEX CONCURRENTLY site_organization_id_created_at_id_idx ON site (organization_id, created_at, id);
CREATE INDEX CONCURRENTLY collection_organization_id_created_at_id_idx ON collection (organization_id, created_at, id);
