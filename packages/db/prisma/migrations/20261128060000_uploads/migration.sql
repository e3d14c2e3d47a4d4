-- Images that people send in pieces, for imports at edges: docs/decisions/0061. Their bytes are files.
CREATE TABLE upload (
  organization_id UUID,
  id UUID,
  vdisk_id UUID NOT NULL,
  name TEXT NOT NULL,
  size_bytes BIGINT NOT NULL,
  expected_sha256 TEXT,
  sha256 TEXT,
  created_by_user_id UUID,
  created_by_name TEXT NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL,
  expires_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, vdisk_id) REFERENCES vdisk ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON upload (organization_id, vdisk_id, id);
SELECT protect_tenant_table('upload');

-- Where the image of an import is, besides a path in the edge's store.
ALTER TABLE store_job ADD COLUMN upload_id UUID;
ALTER TABLE store_job ADD COLUMN source_size_bytes BIGINT;
ALTER TABLE store_job ADD COLUMN source_sha256 TEXT;

-- As in 20261128050000_exports, and where the image is.
SELECT wake_edges_on('store_job',
  $$SELECT organization_id, id, edge_id, kind, vdisk_id, version_id, into_version_id, source_path, upload_id,
    source_size_bytes, source_sha256, boot_files, device_id, layer_class, asked_at, modules, export_format
    FROM %s WHERE state IN ('queued', 'running')$$,
  $$SELECT e.site_id FROM changed JOIN public.edge e ON e.organization_id = changed.organization_id AND e.id = edge_id$$);
