-- outside of a transaction
-- Of a version's copies, the write layers: few, among those of thousands of edges.
CREATE INDEX CONCURRENTLY edge_version_layers ON edge_version (organization_id, version_id, is_written) WHERE is_layer;
-- The sums of an organization's last day and month.
CREATE INDEX CONCURRENTLY boot_rollup_organization_id_grain_starts_at_idx ON boot_rollup (organization_id, grain, starts_at);
-- Who boots a vDisk: a change of it wakes their sites.
CREATE INDEX CONCURRENTLY collection_organization_id_vdisk_id_name_id_idx ON collection (organization_id, vdisk_id, name, id);
