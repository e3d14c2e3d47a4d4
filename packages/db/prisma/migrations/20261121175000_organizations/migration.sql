-- Self-service organizations, their quotas, their end, and what those who run the installation see: docs/organizations.md.

-- AlterTable
ALTER TABLE "organization" ADD COLUMN "delete_asked_at" TIMESTAMPTZ(3),
ADD COLUMN "delete_asked_by_user_id" UUID,
ADD COLUMN "deleting_at" TIMESTAMPTZ(3),
ADD COLUMN "founded_by_user_id" UUID;

-- AlterTable
ALTER TABLE "session" ADD COLUMN "confirmed_at" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "job_state" ADD COLUMN "last_failure_code" TEXT,
ADD COLUMN "failed_organization_count" INTEGER NOT NULL DEFAULT 0;

-- CreateTable
CREATE TABLE "sign_up_link" (
    "id" UUID NOT NULL,
    "email" TEXT NOT NULL,
    "token_hash" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "sign_up_link_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "platform_event" (
    "id" UUID NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "actor_user_id" UUID,
    "action" TEXT NOT NULL,
    "subject_id" UUID,
    "before" JSONB,
    "after" JSONB,

    CONSTRAINT "platform_event_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE UNIQUE INDEX "sign_up_link_token_hash_key" ON "sign_up_link"("token_hash");

-- CreateIndex
CREATE INDEX "sign_up_link_expires_at_idx" ON "sign_up_link"("expires_at");

-- CreateIndex
CREATE INDEX "platform_event_at_id_idx" ON "platform_event"("at" DESC, "id" DESC);

-- What those who run the installation did stays, as the organizations' own audit log does while they are there.
REVOKE UPDATE, DELETE, TRUNCATE ON "platform_event" FROM bootfarm_api;

-- Quotas. Whatever makes such a row, by hand, in bulk, from a file, out of the trash or by itself, passes here.

CREATE FUNCTION quota_used(organization_id uuid, quota text) RETURNS bigint
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE quota_used.quota
    WHEN 'sites' THEN (SELECT count(*) FROM public.site t WHERE t.organization_id = $1 AND t.deletion_id IS NULL)
    WHEN 'edges' THEN (SELECT count(*) FROM public.edge t WHERE t.organization_id = $1 AND t.revoked_at IS NULL)
    WHEN 'devices' THEN (SELECT count(*) FROM public.device t WHERE t.organization_id = $1 AND t.deletion_id IS NULL)
    WHEN 'vdisks' THEN (SELECT count(*) FROM public.vdisk t WHERE t.organization_id = $1 AND t.deletion_id IS NULL)
    WHEN 'members' THEN (SELECT count(*) FROM public.membership t WHERE t.organization_id = $1)
    WHEN 'api_keys' THEN (
      SELECT count(*) FROM public.api_key t
      WHERE t.organization_id = $1 AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())
    )
    WHEN 'webhooks' THEN (SELECT count(*) FROM public.webhook_endpoint t WHERE t.organization_id = $1)
    WHEN 'schedules' THEN (SELECT count(*) FROM public.schedule t WHERE t.organization_id = $1)
  END
$$;

-- After so many were added: refuses them where the organization has more than it may. Who adds at the same time waits here, so that
-- two cannot both take the last place. Each statement of a volatile function sees what was committed meanwhile.
CREATE FUNCTION require_room(organization_id uuid, quota text, added bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  allowed bigint;
  used bigint;
BEGIN
  SELECT q.count_max INTO allowed FROM public.organization_quota q
  WHERE q.organization_id = require_room.organization_id AND q.name = quota FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  used := public.quota_used(require_room.organization_id, quota);
  IF used > allowed THEN
    RAISE EXCEPTION 'quota exceeded: % used % allowed % added %', quota, used - added, allowed, added USING ERRCODE = 'BF002';
  END IF;
END
$$;

CREATE FUNCTION require_room_for_rows() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  added record;
BEGIN
  FOR added IN SELECT organization_id, count(*) AS rows FROM added_rows GROUP BY organization_id LOOP
    PERFORM public.require_room(added.organization_id, TG_ARGV[0], added.rows);
  END LOOP;
  RETURN NULL;
END
$$;

CREATE TRIGGER within_quota AFTER INSERT ON "site" REFERENCING NEW TABLE AS added_rows
  FOR EACH STATEMENT EXECUTE FUNCTION require_room_for_rows('sites');
CREATE TRIGGER within_quota AFTER INSERT ON "edge" REFERENCING NEW TABLE AS added_rows
  FOR EACH STATEMENT EXECUTE FUNCTION require_room_for_rows('edges');
CREATE TRIGGER within_quota AFTER INSERT ON "device" REFERENCING NEW TABLE AS added_rows
  FOR EACH STATEMENT EXECUTE FUNCTION require_room_for_rows('devices');
CREATE TRIGGER within_quota AFTER INSERT ON "vdisk" REFERENCING NEW TABLE AS added_rows
  FOR EACH STATEMENT EXECUTE FUNCTION require_room_for_rows('vdisks');
CREATE TRIGGER within_quota AFTER INSERT ON "membership" REFERENCING NEW TABLE AS added_rows
  FOR EACH STATEMENT EXECUTE FUNCTION require_room_for_rows('members');
CREATE TRIGGER within_quota AFTER INSERT ON "api_key" REFERENCING NEW TABLE AS added_rows
  FOR EACH STATEMENT EXECUTE FUNCTION require_room_for_rows('api_keys');
CREATE TRIGGER within_quota AFTER INSERT ON "webhook_endpoint" REFERENCING NEW TABLE AS added_rows
  FOR EACH STATEMENT EXECUTE FUNCTION require_room_for_rows('webhooks');
CREATE TRIGGER within_quota AFTER INSERT ON "schedule" REFERENCING NEW TABLE AS added_rows
  FOR EACH STATEMENT EXECUTE FUNCTION require_room_for_rows('schedules');

-- Of the transaction's own organization, for what comes out of the trash: that is no INSERT.
CREATE FUNCTION require_own_room(quota text, added bigint) RETURNS void
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF added > 0 THEN
    PERFORM public.require_room(nullif(current_setting('bootfarm.organization_id', true), '')::uuid, quota, added);
  END IF;
END
$$;

-- How many more the transaction's own organization may have, for what takes as many as fit; null for any number. Nobody else takes
-- them before the transaction ends.
CREATE FUNCTION own_room(quota text) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  own uuid := nullif(current_setting('bootfarm.organization_id', true), '')::uuid;
  allowed bigint;
BEGIN
  SELECT q.count_max INTO allowed FROM public.organization_quota q
  WHERE q.organization_id = own AND q.name = quota FOR UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  RETURN greatest(0, allowed - public.quota_used(own, quota));
END
$$;

-- What the transaction's own organization has, of all that there are quotas for.
CREATE FUNCTION own_usage() RETURNS TABLE (name text, used bigint, count_max integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT quota.name, public.quota_used(own.id, quota.name), limits.count_max
  FROM (SELECT nullif(current_setting('bootfarm.organization_id', true), '')::uuid AS id) AS own
  CROSS JOIN unnest(ARRAY['sites', 'edges', 'devices', 'vdisks', 'members', 'api_keys', 'webhooks', 'schedules'])
    WITH ORDINALITY AS quota (name, place)
  LEFT JOIN public.organization_quota limits ON limits.organization_id = own.id AND limits.name = quota.name
  WHERE own.id IS NOT NULL
  ORDER BY quota.place
$$;

-- How many organizations this person has made and still has. The caller holds the person's row.
CREATE FUNCTION organizations_founded_by(person_id uuid) RETURNS bigint
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT count(*) FROM public.organization WHERE founded_by_user_id = person_id
$$;

-- Figures of organizations, for who runs the installation: counts, instants, and the organization's own name; nothing of what it has.
DROP FUNCTION organization_usage(timestamptz);
CREATE FUNCTION organization_usage(online_since timestamptz, after_id uuid, search text, count_max integer)
RETURNS TABLE (
  organization_id uuid, name text, slug text, created_at timestamptz, suspended_at timestamptz, delete_after timestamptz,
  is_self_service boolean, edges_online bigint, last_report_at timestamptz, edge_versions jsonb, usage jsonb
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT o.id, o.name, o.slug, o.created_at, o.suspended_at, o.delete_after, o.founded_by_user_id IS NOT NULL,
    (SELECT count(*) FROM public.edge e WHERE e.organization_id = o.id AND e.revoked_at IS NULL AND e.heartbeat_at > online_since),
    (SELECT max(e.heartbeat_at) FROM public.edge e WHERE e.organization_id = o.id),
    (
      SELECT coalesce(jsonb_object_agg(v.version, v.edges), '{}')
      FROM (
        -- An edge says its version itself; what is none is no version.
        SELECT CASE WHEN e.agent_version ~ '^[0-9]{1,5}(\.[0-9]{1,5}){1,3}$' THEN e.agent_version ELSE 'other' END AS version,
          count(*) AS edges
        FROM public.edge e WHERE e.organization_id = o.id AND e.revoked_at IS NULL GROUP BY 1
      ) AS v
    ),
    (
      SELECT jsonb_agg(jsonb_build_object('name', quota.name, 'used', public.quota_used(o.id, quota.name), 'allowed', q.count_max)
        ORDER BY quota.place)
      FROM unnest(ARRAY['sites', 'edges', 'devices', 'vdisks', 'members', 'api_keys', 'webhooks', 'schedules'])
        WITH ORDINALITY AS quota (name, place)
      LEFT JOIN public.organization_quota q ON q.organization_id = o.id AND q.name = quota.name
    )
  FROM public.organization o
  WHERE (after_id IS NULL OR o.id > after_id)
    AND (search IS NULL OR strpos(lower(o.name), lower(search)) > 0 OR strpos(o.slug, lower(search)) > 0)
  ORDER BY o.id LIMIT least(organization_usage.count_max, 101)
$$;

-- Sums over the installation.
CREATE FUNCTION platform_figures(online_since timestamptz)
RETURNS TABLE (organizations bigint, suspended bigint, being_deleted bigint, people bigint, edges bigint, edges_online bigint, database_size_bytes bigint)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT (SELECT count(*) FROM public.organization),
    (SELECT count(*) FROM public.organization WHERE suspended_at IS NOT NULL),
    (SELECT count(*) FROM public.organization WHERE delete_after IS NOT NULL),
    (SELECT count(*) FROM public."user"),
    (SELECT count(*) FROM public.edge WHERE revoked_at IS NULL),
    (SELECT count(*) FROM public.edge WHERE revoked_at IS NULL AND heartbeat_at > online_since),
    pg_database_size(current_database())
$$;

-- The end of an organization, in steps that can each be done again after whoever did them was killed.

CREATE FUNCTION organizations_to_delete(as_of timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT id FROM public.organization WHERE delete_after <= as_of ORDER BY delete_after, id LIMIT 100
$$;

-- What people have chosen to work in: nobody is led to an organization that is gone.
CREATE FUNCTION forget_choices(organization_id uuid) RETURNS void
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  forget text;
BEGIN
  FOR forget IN
    SELECT format('UPDATE %s SET %I = NULL WHERE %I = $1', attrelid::regclass, attname, attname) FROM pg_attribute
    WHERE attrelid IN ('public.session'::regclass, 'public."user"'::regclass)
      AND attname LIKE '%organization\_id' AND NOT attisdropped
  LOOP
    EXECUTE forget USING forget_choices.organization_id;
  END LOOP;
END
$$;

-- The first step, once its time has come: nobody gets in any more, and its edges hear that they are revoked. Says when that was.
CREATE FUNCTION begin_deleting_organization(organization_id uuid, as_of timestamptz) RETURNS timestamptz
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  began timestamptz;
BEGIN
  SELECT coalesce(o.deleting_at, as_of) INTO began FROM public.organization o
  WHERE o.id = $1 AND o.delete_after <= as_of FOR UPDATE;
  IF NOT FOUND THEN RETURN NULL; END IF;
  UPDATE public.organization o SET deleting_at = began WHERE o.id = $1 AND o.deleting_at IS NULL;
  DELETE FROM public.membership t WHERE t.organization_id = $1;
  DELETE FROM public.invitation t WHERE t.organization_id = $1;
  DELETE FROM public.api_key t WHERE t.organization_id = $1;
  DELETE FROM public.webhook_endpoint t WHERE t.organization_id = $1;
  UPDATE public.edge t SET revoked_at = as_of WHERE t.organization_id = $1 AND t.revoked_at IS NULL;
  UPDATE public.join_token t SET expires_at = as_of WHERE t.organization_id = $1 AND t.used_at IS NULL AND t.expires_at > as_of;
  PERFORM public.forget_choices($1);
  RETURN began;
END
$$;

-- The second, again and again until it says 0: removes at most so many rows of one table, partitions each by itself. What others
-- still name is left for the last step.
CREATE FUNCTION delete_organization_rows(organization_id uuid, count_max integer) RETURNS bigint
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  target text;
  removed bigint;
BEGIN
  PERFORM FROM public.organization o WHERE o.id = $1 AND o.deleting_at IS NOT NULL;
  IF NOT FOUND THEN RETURN 0; END IF;
  FOR target IN
    SELECT c.oid::regclass::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attname = 'organization_id' AND NOT a.attisdropped
      -- Locked by whoever reports: held only by the short last step.
      AND c.relname <> 'boot_feed'
    ORDER BY c.reltuples DESC, c.relname
  LOOP
    BEGIN
      EXECUTE format(
        'DELETE FROM %s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %s WHERE organization_id = $1 LIMIT $2))', target, target
      ) USING delete_organization_rows.organization_id, count_max;
      GET DIAGNOSTICS removed = ROW_COUNT;
      IF removed > 0 THEN RETURN removed; END IF;
    EXCEPTION WHEN foreign_key_violation OR restrict_violation THEN
      NULL;
    END;
  END LOOP;
  RETURN 0;
END
$$;

-- The last: what is left, and the organization. Rows of every table that has an organization go, whatever tables there will be, round after round
-- until one finds nothing: what was written while the first one went is found by the next. Who, when and which stays, and no more.
CREATE OR REPLACE FUNCTION delete_organization(organization_id uuid, as_of timestamptz) RETURNS boolean
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  target text;
  asked_by uuid;
  asked_at timestamptz;
  removed bigint;
  removed_of_round bigint;
  is_left boolean;
BEGIN
  SELECT o.delete_asked_by_user_id, o.delete_asked_at INTO asked_by, asked_at FROM public.organization o
  WHERE o.id = $1 AND o.delete_after <= as_of AND o.deleting_at IS NOT NULL FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  FOR round IN 1..20 LOOP
    is_left := false;
    removed_of_round := 0;
    FOR target IN
      SELECT c.oid::regclass::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
      WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND a.attname = 'organization_id' AND NOT a.attisdropped
      ORDER BY c.relname
    LOOP
      BEGIN
        EXECUTE format('DELETE FROM %s WHERE organization_id = $1', target) USING delete_organization.organization_id;
        GET DIAGNOSTICS removed = ROW_COUNT;
        removed_of_round := removed_of_round + removed;
      EXCEPTION WHEN foreign_key_violation OR restrict_violation THEN
        is_left := true;
      END;
    END LOOP;
    EXIT WHEN NOT is_left AND removed_of_round = 0;
  END LOOP;
  IF is_left OR removed_of_round > 0 THEN RAISE EXCEPTION 'rows of the organization are still named by others'; END IF;
  PERFORM public.forget_choices($1);
  DELETE FROM public.organization o WHERE o.id = $1;
  INSERT INTO public.platform_event (id, at, actor_user_id, action, subject_id, before, after)
  VALUES (gen_random_uuid(), as_of, asked_by, 'organization.deleted', $1, jsonb_build_object('askedAt', asked_at), NULL);
  RETURN true;
END
$$;

GRANT EXECUTE ON FUNCTION require_own_room(text, bigint), own_room(text), own_usage(), organizations_founded_by(uuid),
  organization_usage(timestamptz, uuid, text, integer), platform_figures(timestamptz), organizations_to_delete(timestamptz),
  begin_deleting_organization(uuid, timestamptz), delete_organization_rows(uuid, integer)
TO bootfarm_api;
