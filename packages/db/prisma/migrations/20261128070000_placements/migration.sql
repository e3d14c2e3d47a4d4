-- Which edges hold the versions of a vDisk, and the differences that bring versions to them: docs/decisions/0068. Earlier
-- releases order neither kind of job.
ALTER TYPE "StoreJobKind" ADD VALUE 'pack';
ALTER TYPE "StoreJobKind" ADD VALUE 'fetch';
ALTER TABLE store_job ADD COLUMN difference_id UUID;
ALTER TABLE store_job ADD COLUMN base_version_id UUID;
ALTER TABLE store_job ADD COLUMN to_control_plane BOOLEAN DEFAULT FALSE;
ALTER TABLE store_job ADD COLUMN from_control_plane BOOLEAN DEFAULT FALSE;
ALTER TABLE store_job ADD COLUMN source_edge_ids UUID[] DEFAULT ARRAY[]::UUID[];
ALTER TABLE store_job ADD COLUMN difference_size_bytes BIGINT;
ALTER TABLE store_job ADD COLUMN difference_list_sha256 TEXT;
ALTER TABLE store_job ADD COLUMN rate_bytes_per_second BIGINT;

-- The bytes of a difference lie in the control plane's object store and at edges.
CREATE TABLE difference (
  organization_id UUID,
  id UUID,
  vdisk_id UUID NOT NULL,
  version_id UUID NOT NULL,
  base_version_id UUID,
  created_at TIMESTAMPTZ(3) NOT NULL,
  needed_at TIMESTAMPTZ(3) NOT NULL,
  size_bytes BIGINT,
  list_sha256 TEXT,
  packed_at TIMESTAMPTZ(3),
  stored_at TIMESTAMPTZ(3),
  PRIMARY KEY (organization_id, id),
  UNIQUE NULLS NOT DISTINCT (organization_id, version_id, base_version_id),
  FOREIGN KEY (organization_id, vdisk_id) REFERENCES vdisk ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, version_id) REFERENCES vdisk_version ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON difference (organization_id, vdisk_id, id);
SELECT protect_tenant_table('difference');

-- The edges that keep a difference for the other edges of their site.
CREATE TABLE edge_difference (
  organization_id UUID,
  edge_id UUID,
  difference_id UUID,
  kept_since TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, edge_id, difference_id),
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, difference_id) REFERENCES difference ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON edge_difference (organization_id, difference_id, edge_id);
SELECT protect_tenant_table('edge_difference');

-- Of a vDisk, or of a farm for its vDisks without one.
CREATE TABLE placement (
  organization_id UUID,
  id UUID,
  farm_id UUID NOT NULL,
  vdisk_id UUID,
  revision INTEGER NOT NULL DEFAULT 1,
  changed_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, id),
  UNIQUE NULLS NOT DISTINCT (organization_id, farm_id, vdisk_id),
  FOREIGN KEY (organization_id, farm_id) REFERENCES farm ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, vdisk_id) REFERENCES vdisk ON UPDATE CASCADE ON DELETE CASCADE
);
SELECT protect_tenant_table('placement');

-- site_id is null: every site without a row.
CREATE TABLE placement_site (
  organization_id UUID,
  id UUID,
  placement_id UUID NOT NULL,
  site_id UUID,
  edges INTEGER,
  rate_bytes_per_second BIGINT,
  window_from TEXT,
  window_to TEXT,
  PRIMARY KEY (organization_id, id),
  UNIQUE NULLS NOT DISTINCT (organization_id, placement_id, site_id),
  FOREIGN KEY (organization_id, placement_id) REFERENCES placement ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE
);
SELECT protect_tenant_table('placement_site');

-- As in 20261128060000_uploads, and the differences.
SELECT wake_edges_on('store_job',
  $$SELECT organization_id, id, edge_id, kind, vdisk_id, version_id, into_version_id, source_path, upload_id,
    source_size_bytes, source_sha256, boot_files, device_id, layer_class, asked_at, modules, export_format, difference_id,
    base_version_id, to_control_plane, from_control_plane, source_edge_ids, difference_size_bytes, difference_list_sha256,
    rate_bytes_per_second FROM %s WHERE state IN ('queued', 'running')$$,
  $$SELECT e.site_id FROM changed JOIN public.edge e ON e.organization_id = changed.organization_id AND e.id = edge_id$$);

SELECT wake_edges_on('edge_difference', $$SELECT organization_id, edge_id, difference_id, kept_since FROM %s$$,
  $$SELECT e.site_id FROM changed JOIN public.edge e ON e.organization_id = changed.organization_id AND e.id = edge_id$$);
