-- Where the keeper of schedules has something to do: instants to compute, a run whose instant has come or whose time is over,
-- or one whose end was not announced.
CREATE FUNCTION organizations_with_due_schedules(until timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT schedule.organization_id FROM public.schedule
  WHERE schedule.renew_at <= organizations_with_due_schedules.until OR EXISTS (SELECT FROM unnest(schedule.instants) AS instant
    WHERE instant > schedule.prepared_until AND instant <= organizations_with_due_schedules.until)
  UNION SELECT run.organization_id FROM public.schedule_run AS run
  WHERE run.closed_at IS NULL AND run.closes_at <= organizations_with_due_schedules.until
  UNION SELECT run.organization_id FROM public.schedule_run AS run WHERE run.told_at IS NULL
$$;
GRANT EXECUTE ON FUNCTION organizations_with_due_schedules(timestamptz) TO bootfarm_api;
