-- Boots that go on are those that the edges' last heartbeats count, and of edges that are heard alone: what a vanished edge had begun is not
-- known to go on. Otherwise as before.
CREATE OR REPLACE FUNCTION fleet_figures(at TIMESTAMPTZ, online_within INTERVAL, skew_ms BIGINT) RETURNS TABLE (
  edges_online BIGINT, edges_offline BIGINT, edges_skewed BIGINT, edges_refused BIGINT, devices_booting BIGINT, report_backlog BIGINT,
  states_waiting BIGINT, oldest_state_waiting_at TIMESTAMPTZ, deliveries_waiting BIGINT, oldest_delivery_due_at TIMESTAMPTZ
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH edges AS (
    SELECT organization_id, id, heartbeat_at > at - online_within AS is_online, clock_offset_ms, refused_code,
      heartbeat->>'reportBacklog' AS backlog, heartbeat->>'devicesBooting' AS booting
    FROM public.edge WHERE revoked_at IS NULL
  ), of_edges AS (
    SELECT count(*) FILTER (WHERE is_online) AS online, count(*) FILTER (WHERE is_online IS NOT TRUE) AS offline,
      count(*) FILTER (WHERE is_online AND abs(clock_offset_ms) > skew_ms) AS skewed, count(refused_code) AS refused,
      coalesce(sum(backlog::BIGINT) FILTER (WHERE is_online), 0)::BIGINT AS backlog,
      coalesce(sum(booting::BIGINT) FILTER (WHERE is_online), 0)::BIGINT AS booting
    FROM edges
  ), of_states AS (
    SELECT count(*) AS waiting, min(desired_state.issued_at) AS oldest
    FROM public.desired_state JOIN edges ON edges.organization_id = desired_state.organization_id AND edges.id = desired_state.edge_id
    WHERE acknowledged_at IS NULL
  ), of_deliveries AS (
    SELECT count(*) AS waiting, min(due_at) AS oldest FROM public.webhook_delivery WHERE state = 'pending'
  )
  SELECT of_edges.online, of_edges.offline, of_edges.skewed, of_edges.refused, of_edges.booting, of_edges.backlog,
    of_states.waiting, of_states.oldest, of_deliveries.waiting, of_deliveries.oldest
  FROM of_edges, of_states, of_deliveries
$$;
