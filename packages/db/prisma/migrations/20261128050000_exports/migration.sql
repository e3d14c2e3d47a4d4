-- Jobs that write a version to a file at its edge. Earlier releases order none.
ALTER TYPE "StoreJobKind" ADD VALUE 'export';
CREATE TYPE "ExportFormat" AS ENUM ('raw', 'qcow2', 'vhdx');
ALTER TABLE "store_job" ADD COLUMN "export_format" "ExportFormat";

-- As in 20261128000000_import_modules, and the format.
SELECT wake_edges_on('store_job',
  $$SELECT organization_id, id, edge_id, kind, vdisk_id, version_id, into_version_id, source_path, boot_files, device_id,
    layer_class, asked_at, modules, export_format FROM %s WHERE state IN ('queued', 'running')$$,
  $$SELECT e.site_id FROM changed JOIN public.edge e ON e.organization_id = changed.organization_id AND e.id = edge_id$$);
