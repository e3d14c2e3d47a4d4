-- AlterTable
ALTER TABLE "organization" ADD COLUMN     "delete_after" TIMESTAMPTZ(3),
ADD COLUMN     "revision" INTEGER NOT NULL DEFAULT 1,
ADD COLUMN     "suspended_at" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "session" ADD COLUMN     "active_organization_id" UUID;

-- AlterTable
ALTER TABLE "user" ADD COLUMN     "is_platform_operator" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "two_factor_enabled" BOOLEAN DEFAULT false;

-- CreateTable
CREATE TABLE "two_factor" (
    "id" UUID NOT NULL,
    "secret" TEXT NOT NULL,
    "backup_codes" TEXT NOT NULL,
    "user_id" UUID NOT NULL,
    "verified" BOOLEAN DEFAULT true,
    "failed_verification_count" INTEGER DEFAULT 0,
    "locked_until" TIMESTAMPTZ(3),

    CONSTRAINT "two_factor_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "rate_limit" (
    "id" UUID NOT NULL,
    "key" TEXT NOT NULL,
    "count" INTEGER NOT NULL,
    "last_request" BIGINT NOT NULL,

    CONSTRAINT "rate_limit_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "setup_link" (
    "id" UUID NOT NULL,
    "token_hash" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "used_at" TIMESTAMPTZ(3),

    CONSTRAINT "setup_link_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "job_state" (
    "name" TEXT NOT NULL,
    "last_succeeded_at" TIMESTAMPTZ(3),
    "last_failed_at" TIMESTAMPTZ(3),
    "failure_count" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "job_state_pkey" PRIMARY KEY ("name")
);

-- CreateTable
CREATE TABLE "invitation" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "email" TEXT NOT NULL,
    "role" "Role" NOT NULL,
    "farm_id" UUID,
    "site_id" UUID,
    "collection_id" UUID,
    "token_hash" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "invited_by_user_id" UUID,
    "invited_by_name" TEXT NOT NULL,
    "sent_at" TIMESTAMPTZ(3),
    "accepted_at" TIMESTAMPTZ(3),
    "accepted_by_user_id" UUID,
    "revoked_at" TIMESTAMPTZ(3),

    CONSTRAINT "invitation_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "organization_quota" (
    "organization_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "count_max" INTEGER NOT NULL,

    CONSTRAINT "organization_quota_pkey" PRIMARY KEY ("organization_id","name")
);

-- CreateIndex
CREATE INDEX "two_factor_user_id_idx" ON "two_factor"("user_id");

-- CreateIndex
CREATE UNIQUE INDEX "rate_limit_key_key" ON "rate_limit"("key");

-- CreateIndex
CREATE UNIQUE INDEX "setup_link_token_hash_key" ON "setup_link"("token_hash");

-- CreateIndex
CREATE UNIQUE INDEX "invitation_token_hash_key" ON "invitation"("token_hash");

-- CreateIndex
CREATE INDEX "invitation_organization_id_email_idx" ON "invitation"("organization_id", "email");

-- CreateIndex
CREATE INDEX "invitation_organization_id_farm_id_idx" ON "invitation"("organization_id", "farm_id");

-- CreateIndex
CREATE INDEX "invitation_organization_id_site_id_idx" ON "invitation"("organization_id", "site_id");

-- CreateIndex
CREATE INDEX "invitation_organization_id_collection_id_idx" ON "invitation"("organization_id", "collection_id");

-- AddForeignKey
ALTER TABLE "two_factor" ADD CONSTRAINT "two_factor_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "user"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "invitation" ADD CONSTRAINT "invitation_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "invitation" ADD CONSTRAINT "invitation_organization_id_farm_id_fkey" FOREIGN KEY ("organization_id", "farm_id") REFERENCES "farm"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "invitation" ADD CONSTRAINT "invitation_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "invitation" ADD CONSTRAINT "invitation_organization_id_collection_id_fkey" FOREIGN KEY ("organization_id", "collection_id") REFERENCES "collection"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "organization_quota" ADD CONSTRAINT "organization_quota_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;


-- These belong to one organization; what is above it (two_factor, rate_limit, setup_link, job_state) is the API's alone.
SELECT protect_tenant_table('invitation');
SELECT protect_tenant_table('organization_quota');

-- Who invites once more resends; two open invitations of the same role in the same place say nothing new.
CREATE UNIQUE INDEX "invitation_open_once" ON "invitation"("organization_id", "email", "role", "farm_id", "site_id", "collection_id")
NULLS NOT DISTINCT WHERE "accepted_at" IS NULL AND "revoked_at" IS NULL;

-- What has to be known before the organization is, as in the migration `tenancy`. Each answers one question and no more.

-- Whose invitation has a token with this SHA-256.
CREATE FUNCTION invitation_organization(token_hash text) RETURNS uuid
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT invitation.organization_id FROM public.invitation
  WHERE invitation.token_hash = invitation_organization.token_hash
$$;

-- Whether somebody has invited this address: it may then make an account by signing in elsewhere.
CREATE FUNCTION is_invited(email text, as_of timestamptz) RETURNS boolean
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT EXISTS (
    SELECT FROM public.invitation
    WHERE invitation.email = is_invited.email AND accepted_at IS NULL AND revoked_at IS NULL AND expires_at > as_of
  )
$$;

-- Which organization has this slug, for settings of the installation that name one.
CREATE FUNCTION organization_of_slug(slug text) RETURNS uuid
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT organization.id FROM public.organization WHERE organization.slug = organization_of_slug.slug
$$;

-- Figures of every organization, for who runs the installation: counts and no content.
CREATE FUNCTION organization_usage(online_since timestamptz)
RETURNS TABLE (
  organization_id uuid, name text, slug text, created_at timestamptz, suspended_at timestamptz, delete_after timestamptz,
  members bigint, sites bigint, edges bigint, edges_online bigint, devices bigint, boot_changes bigint
)
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT o.id, o.name, o.slug, o.created_at, o.suspended_at, o.delete_after,
    (SELECT count(*) FROM public.membership WHERE organization_id = o.id),
    (SELECT count(*) FROM public.site WHERE organization_id = o.id AND deletion_id IS NULL),
    (SELECT count(*) FROM public.edge WHERE organization_id = o.id AND revoked_at IS NULL),
    (SELECT count(*) FROM public.edge WHERE organization_id = o.id AND revoked_at IS NULL AND heartbeat_at > online_since),
    (SELECT count(*) FROM public.device WHERE organization_id = o.id AND deletion_id IS NULL),
    coalesce((SELECT last_change FROM public.boot_feed WHERE organization_id = o.id), 0)
  FROM public.organization o ORDER BY o.id
$$;

-- Deletes an organization whose time has come, and says whether it did. Rows of every table that has an organization go, whatever
-- tables there will be: those that nothing names any more first, round after round.
CREATE FUNCTION delete_organization(organization_id uuid, as_of timestamptz) RETURNS boolean
LANGUAGE plpgsql STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  target text;
  is_left boolean;
BEGIN
  PERFORM FROM public.organization o
  WHERE o.id = delete_organization.organization_id AND o.delete_after <= as_of FOR UPDATE;
  IF NOT FOUND THEN RETURN false; END IF;
  FOR round IN 1..20 LOOP
    is_left := false;
    FOR target IN
      SELECT c.oid::regclass::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
      WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
        AND a.attname = 'organization_id' AND NOT a.attisdropped
      ORDER BY c.relname
    LOOP
      BEGIN
        EXECUTE format('DELETE FROM %s WHERE organization_id = $1', target) USING delete_organization.organization_id;
      EXCEPTION WHEN foreign_key_violation OR restrict_violation THEN
        is_left := true;
      END;
    END LOOP;
    EXIT WHEN NOT is_left;
  END LOOP;
  IF is_left THEN RAISE EXCEPTION 'rows of the organization are still named by others'; END IF;
  DELETE FROM public.organization o WHERE o.id = delete_organization.organization_id;
  RETURN true;
END
$$;

GRANT EXECUTE ON FUNCTION invitation_organization(text), is_invited(text, timestamptz), organization_of_slug(text),
  organization_usage(timestamptz), delete_organization(uuid, timestamptz)
TO bootfarm_api;
