-- Versions from maintenance over test to released, what edges' stores hold of them, and the work of stores: docs/versions.md.

-- CreateEnum
CREATE TYPE "DeviceType" AS ENUM ('production', 'test', 'maintenance');
CREATE TYPE "VersionState" AS ENUM ('maintenance', 'test', 'released');
CREATE TYPE "WriteCacheClass" AS ENUM ('device_ram', 'device_ram_overflow', 'edge', 'edge_persistent', 'private');
CREATE TYPE "WriteCacheFull" AS ENUM ('stop', 'read_only');
CREATE TYPE "EdgeVersionState" AS ENUM ('present', 'importing', 'damaged', 'missing');
CREATE TYPE "StoreJobKind" AS ENUM ('seal', 'merge', 'verify', 'gc', 'delete', 'import');
CREATE TYPE "StoreJobState" AS ENUM ('queued', 'running', 'done', 'failed', 'cancelled');

-- AlterTable
ALTER TABLE "device" ADD COLUMN "device_type" "DeviceType" NOT NULL DEFAULT 'production';
ALTER TABLE "edge" ADD COLUMN "store_epoch" BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN "store_counter" BIGINT NOT NULL DEFAULT 0,
  ADD COLUMN "store_reported_at" TIMESTAMPTZ(3),
  ADD COLUMN "store_facts" JSONB;
ALTER TABLE "vdisk" ADD COLUMN "default_version_id" UUID,
  ADD COLUMN "override_version_id" UUID,
  ADD COLUMN "pending_version_id" UUID,
  ADD COLUMN "maintenance_device_id" UUID,
  ADD COLUMN "last_version_number" INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN "write_cache" "WriteCacheClass" NOT NULL DEFAULT 'device_ram',
  ADD COLUMN "write_cache_limit_bytes" BIGINT,
  ADD COLUMN "write_cache_full" "WriteCacheFull" NOT NULL DEFAULT 'stop';
-- Versions that are there, and those that the release before registers, are whole files that do not change: sealed, and released.
ALTER TABLE "vdisk_version" ADD COLUMN "state" "VersionState" NOT NULL DEFAULT 'released',
  ADD COLUMN "released_at" TIMESTAMPTZ(3),
  ADD COLUMN "parent_version_id" UUID,
  ADD COLUMN "sealed_at" TIMESTAMPTZ(3) DEFAULT CURRENT_TIMESTAMP,
  ADD COLUMN "seal_asked_at" TIMESTAMPTZ(3),
  ADD COLUMN "manifest_root" BYTEA,
  ADD COLUMN "manifest_counter" BIGINT,
  ADD COLUMN "kernel_sha256" TEXT,
  ADD COLUMN "kernel_size_bytes" BIGINT,
  ADD COLUMN "initrd_sha256" TEXT,
  ADD COLUMN "initrd_size_bytes" BIGINT;
ALTER TABLE "vdisk_version" ADD CONSTRAINT "manifest_root_is_sha256"
  CHECK (octet_length(manifest_root) = 32) NOT VALID;

-- CreateTable
CREATE TABLE "edge_version" (
    "organization_id" UUID NOT NULL,
    "edge_id" UUID NOT NULL,
    "version_id" UUID NOT NULL,
    "state" "EdgeVersionState" NOT NULL,
    "root" BYTEA,
    "is_layer" BOOLEAN NOT NULL DEFAULT false,
    "own_bytes" BIGINT NOT NULL,
    "shared_bytes" BIGINT NOT NULL,
    "reclaimable_bytes" BIGINT NOT NULL,
    "checked_at" TIMESTAMPTZ(3),
    "reported_at" TIMESTAMPTZ(3) NOT NULL,
    "scan" BIGINT NOT NULL,

    CONSTRAINT "edge_version_pkey" PRIMARY KEY ("organization_id","edge_id","version_id")
);

-- CreateTable
CREATE TABLE "store_job" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "edge_id" UUID NOT NULL,
    "kind" "StoreJobKind" NOT NULL,
    "state" "StoreJobState" NOT NULL DEFAULT 'queued',
    "vdisk_id" UUID,
    "version_id" UUID,
    "into_version_id" UUID,
    "source_path" TEXT,
    "progress_bytes" BIGINT NOT NULL DEFAULT 0,
    "total_bytes" BIGINT NOT NULL DEFAULT 0,
    "message" TEXT,
    "asked_by_user_id" UUID,
    "asked_by_name" TEXT NOT NULL,
    "asked_at" TIMESTAMPTZ(3) NOT NULL,
    "started_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),

    CONSTRAINT "store_job_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateIndex
CREATE INDEX "edge_version_organization_id_version_id_idx" ON "edge_version"("organization_id", "version_id");
CREATE INDEX "store_job_organization_id_edge_id_state_idx" ON "store_job"("organization_id", "edge_id", "state");
CREATE INDEX "store_job_organization_id_vdisk_id_asked_at_idx" ON "store_job"("organization_id", "vdisk_id", "asked_at");
CREATE INDEX "store_job_organization_id_asked_at_id_idx" ON "store_job"("organization_id", "asked_at", "id");

-- AddForeignKey
ALTER TABLE "edge_version" ADD CONSTRAINT "edge_version_organization_id_edge_id_fkey" FOREIGN KEY ("organization_id", "edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "edge_version" ADD CONSTRAINT "edge_version_organization_id_version_id_fkey" FOREIGN KEY ("organization_id", "version_id") REFERENCES "vdisk_version"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "store_job" ADD CONSTRAINT "store_job_organization_id_edge_id_fkey" FOREIGN KEY ("organization_id", "edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

SELECT protect_tenant_table('edge_version');
SELECT protect_tenant_table('store_job');

-- What people change of them now counts as well.
CREATE OR REPLACE TRIGGER next_revision BEFORE UPDATE OF site_id, collection_id, name, mac, enabled, boot_program_set, boot_menu_choice, boot_menu_id, tags, vdisk_id, personality, device_type, deletion_id ON "device"
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();
CREATE OR REPLACE TRIGGER next_revision BEFORE UPDATE OF name, store_id, note, default_version_id, override_version_id, pending_version_id, maintenance_device_id, write_cache, write_cache_limit_bytes, write_cache_full, deletion_id ON "vdisk"
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();
CREATE OR REPLACE TRIGGER next_revision BEFORE UPDATE OF note, labels, state, released_at, seal_asked_at, deletion_id ON "vdisk_version"
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();

-- A sealed version never changes, whoever writes it: its bytes are what its root says.
CREATE FUNCTION keep_sealed() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'version % is sealed: what it holds never changes', OLD.number USING ERRCODE = 'check_violation';
END
$$;
CREATE TRIGGER keep_sealed BEFORE UPDATE OF number, size_bytes, manifest_root, sealed_at ON "vdisk_version"
  FOR EACH ROW WHEN (OLD.sealed_at IS NOT NULL AND OLD.manifest_root IS NOT NULL AND (
    OLD.number, OLD.size_bytes, OLD.manifest_root, OLD.sealed_at
  ) IS DISTINCT FROM (NEW.number, NEW.size_bytes, NEW.manifest_root, NEW.sealed_at))
  EXECUTE FUNCTION keep_sealed();

-- Where a version's release instant has come and it is not the default yet.
CREATE FUNCTION organizations_with_due_releases(until timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT vdisk.organization_id FROM public.vdisk
  JOIN public.vdisk_version AS version ON version.organization_id = vdisk.organization_id AND version.id = vdisk.pending_version_id
  WHERE vdisk.deletion_id IS NULL AND version.released_at <= organizations_with_due_releases.until
$$;

GRANT EXECUTE ON FUNCTION organizations_with_due_releases(timestamptz) TO bootfarm_api;
