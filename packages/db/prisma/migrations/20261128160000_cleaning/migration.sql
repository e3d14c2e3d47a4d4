-- When an edge's store frees what no version needs, without a person. Times of day in the zone of the site; both null: at
-- any time.
CREATE TYPE "CleaningMode" AS ENUM ('off', 'after_deletions', 'daily');
ALTER TABLE edge ADD COLUMN gc_mode "CleaningMode" NOT NULL DEFAULT 'after_deletions';
ALTER TABLE edge ADD COLUMN gc_from TEXT DEFAULT '01:00';
ALTER TABLE edge ADD COLUMN gc_to TEXT DEFAULT '05:00';
CREATE TRIGGER next_revision_of_cleaning BEFORE UPDATE OF gc_mode, gc_from, gc_to ON edge
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();

CREATE FUNCTION organizations_with_stores() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT edge.organization_id FROM public.edge
  WHERE edge.store_reported_at IS NOT NULL AND edge.revoked_at IS NULL
$$;
GRANT EXECUTE ON FUNCTION organizations_with_stores() TO bootfarm_api;
