-- What boots read, by file: docs/decisions/0101. One row of at most 64 KiB a boot, kept like captures.
CREATE TABLE boot_files_read (
  organization_id UUID,
  boot_id UUID,
  site_id UUID NOT NULL,
  received_at TIMESTAMPTZ(3) NOT NULL,
  report JSONB NOT NULL,
  PRIMARY KEY (organization_id, boot_id),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, boot_id) REFERENCES boot_key ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON boot_files_read (organization_id, site_id, received_at DESC, boot_id DESC);
CREATE INDEX ON boot_files_read (received_at);
SELECT protect_tenant_table('boot_files_read');
