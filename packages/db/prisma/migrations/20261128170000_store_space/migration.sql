-- How much of the file system of an edge's store was free, every six hours of the last 60 days: docs/decisions/0073.
CREATE TABLE edge_space (
  organization_id UUID,
  edge_id UUID,
  measured_at TIMESTAMPTZ(3),
  free_bytes BIGINT NOT NULL,
  total_bytes BIGINT NOT NULL,
  PRIMARY KEY (organization_id, edge_id, measured_at),
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
);
SELECT protect_tenant_table('edge_space');

-- Since when the warning stands that the store becomes full; null: it does not stand.
ALTER TABLE edge ADD COLUMN filling_told_at TIMESTAMPTZ(3);
