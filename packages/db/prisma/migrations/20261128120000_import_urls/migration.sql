-- Where the image of an import is, besides a path in the edge's store and an upload.
ALTER TABLE store_job ADD COLUMN source_url TEXT;

-- As in 20261128070000_placements, and the URL.
SELECT wake_edges_on('store_job',
  $$SELECT organization_id, id, edge_id, kind, vdisk_id, version_id, into_version_id, source_path, upload_id, source_url,
    source_size_bytes, source_sha256, boot_files, device_id, layer_class, asked_at, modules, export_format, difference_id,
    base_version_id, to_control_plane, from_control_plane, source_edge_ids, difference_size_bytes, difference_list_sha256,
    rate_bytes_per_second FROM %s WHERE state IN ('queued', 'running')$$,
  $$SELECT e.site_id FROM changed JOIN public.edge e ON e.organization_id = changed.organization_id AND e.id = edge_id$$);
