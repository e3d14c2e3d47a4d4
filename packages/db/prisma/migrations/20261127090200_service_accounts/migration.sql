-- Accounts of programs: docs/decisions/0054. Such an account is a person's row that belongs to one organization, a member of it,
-- and never signs in. It ends with its membership; no foreign key, because that is how it ends with its organization, too.
ALTER TABLE "user" ADD COLUMN service_of UUID;
-- Its roles hold nowhere, and its keys are refused, while this is set. Only of service accounts.
ALTER TABLE membership ADD COLUMN disabled_at TIMESTAMPTZ(3);
ALTER TYPE "AuditActorKind" ADD VALUE 'service_account';

-- A role in what lies in the trash holds nowhere, and neither does a role of a disabled account.
CREATE OR REPLACE FUNCTION grants_of(person_id uuid, organization_id uuid) RETURNS jsonb
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_agg(jsonb_build_object(
    'role', role_grant.role,
    'scope', jsonb_build_object(
      'farmId', coalesce(role_grant.farm_id, site.farm_id, site_of_collection.farm_id),
      'siteId', coalesce(role_grant.site_id, collection.site_id),
      'collectionId', role_grant.collection_id
    )
  ) ORDER BY role_grant.id), '[]'::jsonb)
  FROM public.role_grant
  JOIN public.membership ON membership.organization_id = role_grant.organization_id AND membership.user_id = role_grant.user_id
    AND membership.disabled_at IS NULL
  LEFT JOIN public.farm ON farm.organization_id = role_grant.organization_id AND farm.id = role_grant.farm_id
  LEFT JOIN public.site ON site.organization_id = role_grant.organization_id AND site.id = role_grant.site_id
  LEFT JOIN public.collection
    ON collection.organization_id = role_grant.organization_id AND collection.id = role_grant.collection_id
  LEFT JOIN public.site AS site_of_collection ON site_of_collection.organization_id = collection.organization_id
    AND site_of_collection.id = collection.site_id
  WHERE role_grant.organization_id = grants_of.organization_id AND role_grant.user_id = grants_of.person_id
    AND site.deletion_id IS NULL AND collection.deletion_id IS NULL AND farm.deletion_id IS NULL
$$;

CREATE FUNCTION end_service_accounts() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  DELETE FROM public."user" USING ended
  WHERE "user".id = ended.user_id AND "user".service_of = ended.organization_id;
  RETURN NULL;
END
$$;
CREATE TRIGGER end_service_accounts AFTER DELETE ON membership
  REFERENCING OLD TABLE AS ended FOR EACH STATEMENT EXECUTE FUNCTION end_service_accounts();

-- Whatever makes a session, a password or a link to a provider, passes here.
CREATE FUNCTION refuse_service_account() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM public."user" WHERE id = NEW.user_id AND service_of IS NOT NULL) THEN
    RAISE EXCEPTION 'a service account does not sign in';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER refuse_service_account BEFORE INSERT OR UPDATE OF user_id ON session
  FOR EACH ROW EXECUTE FUNCTION refuse_service_account();
CREATE TRIGGER refuse_service_account BEFORE INSERT OR UPDATE OF user_id ON account
  FOR EACH ROW EXECUTE FUNCTION refuse_service_account();
CREATE TRIGGER refuse_service_account BEFORE INSERT OR UPDATE OF user_id ON two_factor
  FOR EACH ROW EXECUTE FUNCTION refuse_service_account();

-- Sums over the installation: a service account is not one of the people.
CREATE OR REPLACE FUNCTION platform_figures(online_since timestamptz)
RETURNS TABLE (organizations bigint, suspended bigint, being_deleted bigint, people bigint, edges bigint, edges_online bigint, database_size_bytes bigint)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT (SELECT count(*) FROM public.organization),
    (SELECT count(*) FROM public.organization WHERE suspended_at IS NOT NULL),
    (SELECT count(*) FROM public.organization WHERE delete_after IS NOT NULL),
    (SELECT count(*) FROM public."user" WHERE service_of IS NULL),
    (SELECT count(*) FROM public.edge WHERE revoked_at IS NULL),
    (SELECT count(*) FROM public.edge WHERE revoked_at IS NULL AND heartbeat_at > online_since),
    pg_database_size(current_database())
$$;
