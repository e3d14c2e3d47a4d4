-- outside of a transaction
-- Devices of a vDisk are counted by collection and by version without their rows: docs/decisions/0059-counts-of-large-organizations.md.
-- What is no key here is only read.
CREATE INDEX CONCURRENTLY device_of_collection ON device (organization_id, collection_id, name, id)
  INCLUDE (vdisk_id, device_type, site_id, deletion_id);
DROP INDEX CONCURRENTLY IF EXISTS device_organization_id_collection_id_name_id_idx;
CREATE INDEX CONCURRENTLY device_running ON device (organization_id, runs_vdisk_id, runs_version_id, name, id)
  INCLUDE (last_boot_id, last_boot_outcome, site_id, collection_id, deletion_id)
  WHERE (CASE WHEN runs_boot_id = last_boot_id THEN true ELSE false END) AND (last_boot_outcome IS NULL OR last_boot_outcome = 'ready');
-- Few have another type than most; they are looked for by name.
CREATE INDEX CONCURRENTLY device_of_rare_type ON device (organization_id, device_type, name, id) WHERE device_type <> 'production';
