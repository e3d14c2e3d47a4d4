-- Drivers that an import adds to the initramfs that it makes. Earlier releases leave them out.
ALTER TABLE "store_job" ADD COLUMN "modules" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- As in 20261123160000_wake_edges, and the drivers.
SELECT wake_edges_on('store_job',
  $$SELECT organization_id, id, edge_id, kind, vdisk_id, version_id, into_version_id, source_path, boot_files, device_id,
    layer_class, asked_at, modules FROM %s WHERE state IN ('queued', 'running')$$,
  $$SELECT e.site_id FROM changed JOIN public.edge e ON e.organization_id = changed.organization_id AND e.id = edge_id$$);
