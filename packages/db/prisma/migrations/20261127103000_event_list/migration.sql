-- The list of events: docs/decisions/0057-list-of-events.md. No foreign keys: an event outlives its objects.
ALTER TABLE webhook_event
  ADD COLUMN number BIGINT,
  ADD COLUMN farm_id UUID,
  ADD COLUMN site_id UUID,
  ADD COLUMN collection_id UUID,
  ADD COLUMN device_id UUID,
  ADD COLUMN edge_id UUID,
  ADD COLUMN vdisk_id UUID;

CREATE TABLE event_numbering (
  organization_id UUID,
  last_number BIGINT NOT NULL DEFAULT 0,
  removed_number BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (organization_id),
  FOREIGN KEY (organization_id) REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE
);
SELECT protect_tenant_table('event_numbering');

-- Gives the next numbers to at most so many committed events that have none; how many it numbered. Runs with the caller's
-- rights. The row of `event_numbering` is locked until the caller's transaction ends, so that numbers become visible in
-- their order: whoever sees one sees all that are lower. Each statement here has a newer snapshot than the lock.
CREATE FUNCTION number_events(of_organization uuid, count_max integer) RETURNS integer
LANGUAGE plpgsql VOLATILE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  last_one bigint;
  numbered integer := 0;
  waiting uuid;
BEGIN
  INSERT INTO public.event_numbering (organization_id) VALUES (of_organization) ON CONFLICT DO NOTHING;
  SELECT last_number INTO last_one FROM public.event_numbering WHERE organization_id = of_organization FOR UPDATE;
  -- One by one, each by its key: a join of both is planned by what is known of the table, and that may be nothing yet.
  FOR waiting IN SELECT event.id FROM public.webhook_event AS event
    WHERE event.organization_id = of_organization AND event.number IS NULL AND event.type <> 'ping'
    ORDER BY event.created_at, event.id LIMIT count_max
  LOOP
    numbered := numbered + 1;
    UPDATE public.webhook_event AS event SET number = last_one + numbered
    WHERE event.organization_id = of_organization AND event.id = waiting;
  END LOOP;
  IF numbered > 0 THEN
    UPDATE public.event_numbering SET last_number = last_one + numbered WHERE organization_id = of_organization;
  END IF;
  RETURN numbered;
END
$$;
GRANT EXECUTE ON FUNCTION number_events(uuid, integer) TO bootfarm_api;

-- The organizations with events that wait for their numbers.
CREATE FUNCTION organizations_with_new_events() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT event.organization_id FROM public.webhook_event AS event
  WHERE event.number IS NULL AND event.type <> 'ping'
$$;
GRANT EXECUTE ON FUNCTION organizations_with_new_events() TO bootfarm_api;
