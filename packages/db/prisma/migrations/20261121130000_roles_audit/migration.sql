-- AlterEnum
ALTER TYPE "Role" ADD VALUE 'image_manager' BEFORE 'viewer';
ALTER TYPE "Role" ADD VALUE 'auditor' BEFORE 'viewer';

-- AlterTable
ALTER TABLE "membership" ALTER COLUMN "role" DROP NOT NULL;

-- CreateEnum
CREATE TYPE "AuditActorKind" AS ENUM ('person', 'api_key', 'edge', 'system', 'platform');

-- CreateTable
CREATE TABLE "role_grant" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "role" "Role" NOT NULL,
    "farm_id" UUID,
    "site_id" UUID,
    "collection_id" UUID,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "granted_by_user_id" UUID,

    CONSTRAINT "role_grant_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "audit_entry" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL,
    "actor_kind" "AuditActorKind" NOT NULL,
    "actor_id" UUID,
    "actor_name" TEXT NOT NULL,
    "action" TEXT NOT NULL,
    "object_kind" TEXT NOT NULL,
    "object_id" UUID,
    "object_name" TEXT,
    "farm_id" UUID,
    "site_id" UUID,
    "collection_id" UUID,
    "before" JSONB,
    "after" JSONB,
    "address" TEXT,
    "request_id" TEXT,

    CONSTRAINT "audit_entry_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateIndex
CREATE INDEX "role_grant_organization_id_user_id_idx" ON "role_grant"("organization_id", "user_id");
CREATE INDEX "role_grant_organization_id_farm_id_idx" ON "role_grant"("organization_id", "farm_id");
CREATE INDEX "role_grant_organization_id_site_id_idx" ON "role_grant"("organization_id", "site_id");
CREATE INDEX "role_grant_organization_id_collection_id_idx" ON "role_grant"("organization_id", "collection_id");
CREATE INDEX "audit_entry_organization_id_at_id_idx" ON "audit_entry"("organization_id", "at" DESC, "id" DESC);
CREATE INDEX "audit_entry_organization_id_object_id_at_idx" ON "audit_entry"("organization_id", "object_id", "at" DESC);
CREATE INDEX "audit_entry_organization_id_actor_id_at_idx" ON "audit_entry"("organization_id", "actor_id", "at" DESC);

-- AddForeignKey
ALTER TABLE "role_grant" ADD CONSTRAINT "role_grant_organization_id_user_id_fkey" FOREIGN KEY ("organization_id", "user_id") REFERENCES "membership"("organization_id", "user_id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "role_grant" ADD CONSTRAINT "role_grant_organization_id_farm_id_fkey" FOREIGN KEY ("organization_id", "farm_id") REFERENCES "farm"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "role_grant" ADD CONSTRAINT "role_grant_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "role_grant" ADD CONSTRAINT "role_grant_organization_id_collection_id_fkey" FOREIGN KEY ("organization_id", "collection_id") REFERENCES "collection"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- A role holds in one place, and is granted there once.
ALTER TABLE "role_grant" ADD CONSTRAINT "role_grant_one_scope" CHECK (num_nonnulls(farm_id, site_id, collection_id) <= 1);
CREATE UNIQUE INDEX "role_grant_once" ON "role_grant"("organization_id", "user_id", "role", "farm_id", "site_id", "collection_id") NULLS NOT DISTINCT;

-- Who was a member keeps the same rights, in the whole organization.
INSERT INTO "role_grant" ("organization_id", "id", "user_id", "role", "created_at")
SELECT "organization_id", gen_random_uuid(), "user_id", "role", "created_at" FROM "membership" WHERE "role" IS NOT NULL;

-- An entry of the audit log is never changed and never removed by the API.
DO $$
BEGIN
  IF to_regprocedure('protect_tenant_table(regclass)') IS NOT NULL THEN
    PERFORM protect_tenant_table('role_grant');
    PERFORM protect_tenant_table('audit_entry');
  END IF;
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'bootfarm_api') THEN
    GRANT SELECT, INSERT, UPDATE, DELETE ON "role_grant" TO bootfarm_api;
    GRANT SELECT, INSERT ON "audit_entry" TO bootfarm_api;
    REVOKE UPDATE, DELETE, TRUNCATE ON "audit_entry" FROM bootfarm_api;
  END IF;
END
$$;
