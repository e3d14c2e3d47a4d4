-- outside of a transaction
-- Counts of a vDisk's devices read these alone: docs/decisions/0059-counts-of-large-organizations.md. Many rows have the same
-- key, which PostgreSQL keeps once: 100,000 devices take about 90 pages.
CREATE INDEX CONCURRENTLY device_of_kind ON device (organization_id, vdisk_id, device_type, deletion_id);
DROP INDEX CONCURRENTLY IF EXISTS device_organization_id_vdisk_id_idx;
CREATE INDEX CONCURRENTLY device_running_version ON device (organization_id, runs_vdisk_id, runs_version_id, deletion_id)
  WHERE (CASE WHEN runs_boot_id = last_boot_id THEN true ELSE false END) AND (last_boot_outcome IS NULL OR last_boot_outcome = 'ready');
