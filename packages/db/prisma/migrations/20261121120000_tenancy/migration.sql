-- Row-level security, the second wall between organizations: docs/decisions/0009-row-level-security.md.
-- The API signs in as a member of bootfarm_api, which owns nothing. What it sees is what belongs to the organization that the
-- setting `bootfarm.organization_id` of its transaction names; without it, nothing.

DO $$
BEGIN
  IF to_regrole('bootfarm_api') IS NULL THEN
    CREATE ROLE bootfarm_api NOLOGIN;
  END IF;
EXCEPTION
  -- Roles belong to the server, not to the database: another one has made it, or its administrator has.
  WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;

-- Functions are for those they are granted to, tables of later migrations are covered, and who migrates is of no concern to the API.
ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO bootfarm_api;
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE ON SEQUENCES TO bootfarm_api;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO bootfarm_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO bootfarm_api;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO bootfarm_api;
DO $$
BEGIN
  IF to_regclass('public._prisma_migrations') IS NOT NULL THEN
    REVOKE ALL ON public._prisma_migrations FROM bootfarm_api;
  END IF;
  -- Made by a later migration, which ran before this one where both were not yet released.
  IF to_regclass('public.audit_entry') IS NOT NULL THEN
    REVOKE UPDATE, DELETE ON public.audit_entry FROM bootfarm_api;
  END IF;
END
$$;

-- Called once by the migration that makes a table with `organization_id` (or a partition of one). Calling it again changes nothing.
CREATE FUNCTION protect_tenant_table(target regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  key text := CASE WHEN target = 'public.organization'::regclass THEN 'id' ELSE 'organization_id' END;
  own text := format('%I = nullif(current_setting(%L, true), '''')::uuid', key, 'bootfarm.organization_id');
  owner name := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = target);
BEGIN
  EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', target);
  EXECUTE format('DROP POLICY IF EXISTS own_organization ON %s', target);
  EXECUTE format('CREATE POLICY own_organization ON %s USING (%s) WITH CHECK (%s)', target, own, own);
  -- FORCE binds the owner, too: migrations that change rows, and the functions below, work on all organizations.
  EXECUTE format('DROP POLICY IF EXISTS table_owner ON %s', target);
  EXECUTE format('CREATE POLICY table_owner ON %s TO %I USING (true) WITH CHECK (true)', target, owner);
END
$$;

SELECT protect_tenant_table(pg_class.oid::regclass)
FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND (
  relname = 'organization' OR EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = pg_class.oid AND attname = 'organization_id' AND NOT attisdropped
  )
);

-- What has to be known before the organization is. Each answers one question and no more.

-- By whose key an edge's request is to be checked.
CREATE FUNCTION edge_identity(edge_id uuid)
RETURNS TABLE (organization_id uuid, site_id uuid, public_key text, revoked_at timestamptz, boot_epoch bigint)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT edge.organization_id, edge.site_id, edge.public_key, edge.revoked_at, edge.boot_epoch
  FROM public.edge WHERE edge.id = edge_identity.edge_id
$$;

-- Whose join token has this SHA-256.
CREATE FUNCTION join_token_organization(token_hash text) RETURNS uuid
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT join_token.organization_id FROM public.join_token
  WHERE join_token.token_hash = join_token_organization.token_hash
$$;

-- A person's organizations, the one joined first before the others.
CREATE FUNCTION memberships_of(person_id uuid)
RETURNS TABLE (organization_id uuid, organization_slug text, organization_name text)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT membership.organization_id, organization.slug, organization.name
  FROM public.membership JOIN public.organization ON organization.id = membership.organization_id
  WHERE membership.user_id = memberships_of.person_id
  ORDER BY membership.created_at, membership.organization_id
$$;

-- For jobs, which do their work in one organization after the other.
CREATE FUNCTION organization_ids() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT organization.id FROM public.organization ORDER BY organization.id
$$;

GRANT EXECUTE ON FUNCTION edge_identity(uuid), join_token_organization(text), memberships_of(uuid), organization_ids()
TO bootfarm_api;
