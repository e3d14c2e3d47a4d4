-- How long entries of the audit log are kept: for ever without a row. The owner's command alone writes it; the API's role asks for
-- the removal of what is older, and has no say in what that is: docs/decisions/0013-audit-retention.md.
CREATE TABLE "audit_retention" (
    "id" BOOLEAN NOT NULL DEFAULT true,
    "days" INTEGER NOT NULL,
    "set_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "audit_retention_pkey" PRIMARY KEY ("id"),
    CONSTRAINT "audit_retention_one_row" CHECK ("id"),
    CONSTRAINT "audit_retention_days" CHECK ("days" BETWEEN 30 AND 36500)
);

-- Removes at most so many of an organization's oldest entries, and says so in the log; how many it removed. Goes by the database's clock.
-- What tells of a removal is removed without a word: else each would leave another one.
CREATE FUNCTION remove_old_audit_entries(of_organization uuid, count_max integer) RETURNS integer
LANGUAGE plpgsql VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  kept_days integer := (SELECT days FROM public.audit_retention);
  kept_from timestamptz := date_trunc('day', now(), 'UTC') - make_interval(days => kept_days);
  removed_count integer;
  told_count integer;
BEGIN
  IF kept_days IS NULL THEN
    RETURN 0;
  END IF;
  WITH old AS (
    SELECT id FROM public.audit_entry
    WHERE organization_id = of_organization AND at < kept_from
    ORDER BY at, id LIMIT least(count_max, 10000)
  ), removed AS (
    DELETE FROM public.audit_entry entry USING old
    WHERE entry.organization_id = of_organization AND entry.id = old.id
    RETURNING entry.action
  )
  SELECT count(*), count(*) FILTER (WHERE action <> 'audit.removeOld') INTO removed_count, told_count FROM removed;
  IF told_count > 0 THEN
    INSERT INTO public.audit_entry (organization_id, id, at, actor_kind, actor_name, action, object_kind, after)
    VALUES (
      of_organization, gen_random_uuid(), now(), 'system', 'audit retention', 'audit.removeOld', 'audit',
      jsonb_build_object('removedCount', told_count, 'olderThan', kept_from, 'keptDays', kept_days)
    );
  END IF;
  RETURN removed_count;
END
$$;

GRANT SELECT ON "audit_retention" TO bootfarm_api;
REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON "audit_retention" FROM bootfarm_api;
GRANT EXECUTE ON FUNCTION remove_old_audit_entries(uuid, integer) TO bootfarm_api;
