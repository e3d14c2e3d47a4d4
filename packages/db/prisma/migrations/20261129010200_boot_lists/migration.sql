-- Lists of boots by duration, and of one vDisk or version: apps/api/src/boot/list-boots.ts.
ALTER TABLE boot ADD COLUMN duration_us BIGINT;
-- not expand-only: the API of the release before never reads it; boots that it ends during the exchange have none
UPDATE boot SET duration_us = total_us WHERE outcome IS NOT NULL;
-- not expand-only: PostgreSQL builds no index concurrently on a partitioned table; edges keep their reports and send them again
CREATE INDEX ON boot (organization_id, duration_us DESC NULLS LAST, id DESC);
-- not expand-only: the same
CREATE INDEX ON boot (organization_id, vdisk_id, version_id, started_at DESC, id DESC);
