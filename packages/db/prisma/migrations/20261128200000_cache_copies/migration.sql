-- Every so many hours the site's edges copy write caches for another edge of the site: docs/decisions/0088. 0: never.
ALTER TABLE site ADD COLUMN cache_copy_hours INTEGER NOT NULL DEFAULT 0 CHECK (cache_copy_hours BETWEEN 0 AND 168);
CREATE TRIGGER next_revision_of_cache_copies BEFORE UPDATE OF cache_copy_hours ON site
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();

SELECT wake_edges_on('site',
  $$SELECT id, farm_id, name, unknown_devices, boot_program_set, capture, cache_copy_hours, edge_key, deletion_id FROM %s$$,
  $$SELECT id FROM changed$$);
