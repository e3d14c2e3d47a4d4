-- Which messages are sent next: organizations and endpoints take turns, so that a long queue of one delays no other.
-- `busy` are the organizations and endpoints whose slots are all taken. Reads a few rows for each endpoint with pending
-- messages, however many those are.
CREATE FUNCTION next_webhook_deliveries(
  at timestamptz, count_max integer, per_endpoint integer, per_organization integer, busy uuid[]
) RETURNS TABLE (organization_id uuid, endpoint_id uuid, delivery_id uuid)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  WITH RECURSIVE waiting AS (
    (SELECT first.organization_id, first.endpoint_id FROM public.webhook_delivery AS first
      WHERE first.state = 'pending' ORDER BY first.organization_id, first.endpoint_id LIMIT 1)
    UNION ALL
    SELECT other.organization_id, other.endpoint_id FROM waiting CROSS JOIN LATERAL (
      SELECT further.organization_id, further.endpoint_id FROM public.webhook_delivery AS further
      WHERE further.state = 'pending'
        AND (further.organization_id, further.endpoint_id) > (waiting.organization_id, waiting.endpoint_id)
      ORDER BY further.organization_id, further.endpoint_id LIMIT 1
    ) AS other
  ), in_turn AS (
    SELECT waiting.organization_id, waiting.endpoint_id, message.id, message.due_at,
      row_number() OVER (PARTITION BY waiting.organization_id ORDER BY message.place, message.due_at, message.id) AS turn
    FROM waiting CROSS JOIN LATERAL (
      SELECT due.id, due.due_at, row_number() OVER (ORDER BY due.due_at, due.id) AS place FROM public.webhook_delivery AS due
      WHERE due.organization_id = waiting.organization_id AND due.endpoint_id = waiting.endpoint_id
        AND due.state = 'pending' AND due.due_at <= next_webhook_deliveries.at
      ORDER BY due.due_at, due.id LIMIT next_webhook_deliveries.per_endpoint
    ) AS message
    WHERE waiting.organization_id <> ALL (next_webhook_deliveries.busy)
      AND waiting.endpoint_id <> ALL (next_webhook_deliveries.busy)
  )
  SELECT in_turn.organization_id, in_turn.endpoint_id, in_turn.id FROM in_turn
  WHERE in_turn.turn <= next_webhook_deliveries.per_organization
  ORDER BY in_turn.turn, in_turn.due_at, in_turn.id LIMIT next_webhook_deliveries.count_max
$$;
GRANT EXECUTE ON FUNCTION next_webhook_deliveries(timestamptz, integer, integer, integer, uuid[]) TO bootfarm_api;
