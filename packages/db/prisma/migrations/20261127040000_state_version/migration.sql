-- The number by which a poll learns that nothing changed, without a reading of the state: docs/decisions/0049.
-- A site's version is the sum of its rows. A transaction raises a row that no other one holds and adds one if all are held:
-- none waits for another, and each commit makes the sum larger, in whatever order they come.
CREATE TABLE state_version (
  organization_id UUID NOT NULL,
  site_id UUID,
  id UUID DEFAULT gen_random_uuid(),
  raised BIGINT NOT NULL DEFAULT 1,
  PRIMARY KEY (site_id, id),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE
) WITH (fillfactor = 50);
SELECT protect_tenant_table('state_version');

-- Of which site, in which version, a state was read, and until when it can be right. Null: read it.
ALTER TABLE desired_state ADD COLUMN site_id UUID, ADD COLUMN site_version BIGINT, ADD COLUMN read_again_at TIMESTAMPTZ(3);

CREATE FUNCTION make_state_version() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  INSERT INTO public.state_version (organization_id, site_id) SELECT organization_id, id FROM new_rows;
  RETURN NULL;
END
$$;
CREATE TRIGGER make_state_version AFTER INSERT ON site
  REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION make_state_version();
INSERT INTO state_version (organization_id, site_id) SELECT organization_id, id FROM site;

-- Raises the sites' versions and wakes their edges when the transaction commits.
CREATE FUNCTION wake_sites(sites uuid[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  WITH free AS MATERIALIZED (
    SELECT one.* FROM unnest(sites) AS woken (site_id) CROSS JOIN LATERAL (
      SELECT site_id, id FROM public.state_version AS v WHERE v.site_id = woken.site_id
      ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED) AS one
  ), raised AS (
    UPDATE public.state_version AS v SET raised = v.raised + 1 FROM free WHERE v.site_id = free.site_id AND v.id = free.id
    RETURNING v.site_id
  )
  INSERT INTO public.state_version (organization_id, site_id)
  SELECT DISTINCT v.organization_id, v.site_id FROM public.state_version AS v
  WHERE v.site_id = ANY (sites) AND v.site_id NOT IN (SELECT site_id FROM raised);
  PERFORM pg_notify('bootfarm', 'state:' || site_id) FROM unnest(sites) AS woken (site_id);
END
$$;

-- The triggers' functions, and the one that makes them, call it in place of pg_notify.
DO $make$
DECLARE
  one record;
  changed text;
BEGIN
  FOR one IN SELECT oid, proname, pg_get_functiondef(oid) AS definition FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND (proname LIKE 'wake\_edges\_of\_%' OR proname = 'wake_edges_on')
  LOOP
    changed := replace(replace(one.definition,
      'pg_notify(''bootfarm'', ''state:'' || site_id)', 'public.wake_sites(array_agg(site_id))'),
      'pg_notify(''''bootfarm'''', ''''state:'''' || site_id)', 'public.wake_sites(array_agg(site_id))');
    IF changed = one.definition THEN RAISE EXCEPTION 'the function % does not wake as expected', one.proname; END IF;
    EXECUTE changed;
  END LOOP;
END
$make$;
