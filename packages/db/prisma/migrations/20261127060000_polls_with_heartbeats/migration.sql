-- Polls that carry a heartbeat, of any number of edges: docs/decisions/0052. Keeps the heartbeats as the API's own statement for one
-- does, and says of each edge what its poll is answered by. The API has checked the signatures, by what it remembers of the edges.
-- An edge for which that no longer holds (revoked, moved, another key, a later boot epoch) has no row in the answer and nothing kept,
-- and neither has one whose row somebody holds: nobody else's edge waits for it.
CREATE FUNCTION take_polls(polls jsonb, at timestamptz)
RETURNS TABLE (edge_id uuid, incarnation integer, counter bigint, is_acknowledged boolean, is_current boolean)
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  -- A heartbeat that a crash of the server loses is half a minute old when the next one comes.
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN QUERY
  WITH poll AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(polls) AS one ("organizationId" uuid, "siteId" uuid, "edgeId" uuid, "publicKey" text,
      "bootEpoch" bigint, "counter" bigint, "heartbeat" jsonb)
  ), known AS MATERIALIZED (
    SELECT poll.* FROM poll JOIN public.edge ON edge.organization_id = poll."organizationId" AND edge.id = poll."edgeId"
    WHERE edge.site_id = poll."siteId" AND edge.public_key = poll."publicKey" AND edge.boot_epoch = poll."bootEpoch"
      AND edge.revoked_at IS NULL
    ORDER BY edge.id FOR NO KEY UPDATE OF edge SKIP LOCKED
  ), kept AS (
    UPDATE public.edge SET heartbeat_epoch = known."bootEpoch", heartbeat_counter = known."counter", heartbeat_at = at,
      heartbeat = known."heartbeat",
      clock_offset_ms = (known."heartbeat"->>'clockUnixMs')::bigint - floor(extract(epoch FROM at) * 1000)::bigint,
      agent_version = known."heartbeat"->>'agentVersion', arch = known."heartbeat"->>'arch',
      seal_key = known."heartbeat"->>'sealKey', refused_code = NULL, refused_version = NULL, refused_at = NULL
    FROM known
    WHERE edge.organization_id = known."organizationId" AND edge.id = known."edgeId"
      AND (edge.heartbeat_epoch, edge.heartbeat_counter) < (known."bootEpoch", known."counter")
  )
  SELECT known."edgeId", state.incarnation, state.counter, state.acknowledged_at IS NOT NULL,
    coalesce(state.site_id = known."siteId" AND state.read_again_at > at AND state.site_version = (
      SELECT sum(v.raised) FROM public.state_version AS v WHERE v.site_id = known."siteId"), false)
  FROM known LEFT JOIN public.desired_state AS state
    ON state.organization_id = known."organizationId" AND state.edge_id = known."edgeId";
END
$$;
GRANT EXECUTE ON FUNCTION take_polls(jsonb, timestamptz) TO bootfarm_api;

-- A heartbeat replaces its edge's row: where the page has space for it, no index is touched.
ALTER TABLE edge SET (fillfactor = 50);
