-- An empty disk, into which the disk of a machine is captured: only the device that writes the version above it boots it.
ALTER TABLE vdisk_version ADD COLUMN is_blank BOOLEAN NOT NULL DEFAULT FALSE;
SELECT wake_edges_on('vdisk_version',
  $$SELECT organization_id, id, vdisk_id, number, size_bytes, disk_path, kernel_path, initrd_path, command_line, state, released_at,
    parent_version_id, sealed_at, seal_asked_at, manifest_root, manifest_counter, is_blank, deletion_id FROM %s$$,
  $$SELECT public.sites_with_vdisk(organization_id, vdisk_id) FROM changed
    UNION SELECT e.site_id FROM changed JOIN public.store_job j
        ON j.organization_id = changed.organization_id AND j.state IN ('queued', 'running')
          AND changed.id IN (j.version_id, j.into_version_id)
      JOIN public.edge e ON e.organization_id = j.organization_id AND e.id = j.edge_id$$);

-- Captures of devices' disks: docs/decisions/0085. What has ended stays, so that people see how.
CREATE TABLE disk_capture (
  organization_id UUID,
  id UUID,
  device_id UUID NOT NULL,
  vdisk_id UUID NOT NULL,
  is_new_vdisk BOOLEAN NOT NULL,
  edge_id UUID NOT NULL,
  boot_version_id UUID NOT NULL,
  state TEXT NOT NULL,
  disk TEXT NOT NULL,
  disks TEXT[] NOT NULL DEFAULT '{}',
  size_bytes BIGINT,
  boot_files "GivenBootFiles",
  note TEXT NOT NULL,
  job_id UUID,
  blank_ids UUID[] NOT NULL DEFAULT '{}',
  version_id UUID,
  former_vdisk_id UUID,
  former_device_type "DeviceType",
  former_menu_choice "BootMenuChoice",
  former_menu_id UUID,
  remark TEXT,
  ends_as TEXT,
  reason TEXT,
  progress_bytes BIGINT NOT NULL DEFAULT 0,
  progress_at TIMESTAMPTZ(3),
  rate_bytes_per_second BIGINT,
  wait_seconds INTEGER NOT NULL,
  deadline_at TIMESTAMPTZ(3) NOT NULL,
  asked_by_kind TEXT NOT NULL,
  asked_by_user_id UUID,
  asked_by_key_id UUID,
  asked_by_name TEXT NOT NULL,
  asked_at TIMESTAMPTZ(3) NOT NULL,
  ended_at TIMESTAMPTZ(3),
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, device_id) REFERENCES device ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, vdisk_id) REFERENCES vdisk ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE UNIQUE INDEX disk_capture_active ON disk_capture (organization_id, device_id) WHERE ended_at IS NULL;
CREATE INDEX ON disk_capture (organization_id, device_id, asked_at);
CREATE INDEX ON disk_capture (organization_id, vdisk_id);
CREATE INDEX ON disk_capture (organization_id, edge_id);
SELECT protect_tenant_table('disk_capture');

CREATE FUNCTION organizations_with_captures() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT organization_id FROM public.disk_capture WHERE ended_at IS NULL
$$;
GRANT EXECUTE ON FUNCTION organizations_with_captures() TO bootfarm_api;
