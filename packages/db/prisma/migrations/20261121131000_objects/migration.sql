-- Revisions, the trash, stores, and names with values: docs/decisions/0012-trash-by-row-security.md.

-- CreateTable
CREATE TABLE "deletion" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "kind" TEXT NOT NULL,
    "object_id" UUID NOT NULL,
    "object_name" TEXT NOT NULL,
    "farm_id" UUID,
    "site_id" UUID,
    "collection_id" UUID,
    "counts" JSONB NOT NULL,
    "deleted_at" TIMESTAMPTZ(3) NOT NULL,
    "deleted_by_user_id" UUID,
    "deleted_by_name" TEXT NOT NULL,

    CONSTRAINT "deletion_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "store" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "farm_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "note" TEXT NOT NULL DEFAULT '',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "revision" INTEGER NOT NULL DEFAULT 1,
    "deletion_id" UUID,

    CONSTRAINT "store_pkey" PRIMARY KEY ("organization_id","id")
);

-- AlterTable
ALTER TABLE "farm" ADD COLUMN "deletion_id" UUID, ADD COLUMN "revision" INTEGER NOT NULL DEFAULT 1;
ALTER TABLE "site" ADD COLUMN "deletion_id" UUID, ADD COLUMN "revision" INTEGER NOT NULL DEFAULT 1;
ALTER TABLE "collection" ADD COLUMN "deletion_id" UUID, ADD COLUMN "revision" INTEGER NOT NULL DEFAULT 1;
ALTER TABLE "device" ADD COLUMN "deletion_id" UUID, ADD COLUMN "revision" INTEGER NOT NULL DEFAULT 1;
ALTER TABLE "vdisk" ADD COLUMN "deletion_id" UUID, ADD COLUMN "revision" INTEGER NOT NULL DEFAULT 1;
ALTER TABLE "vdisk_version" ADD COLUMN "deletion_id" UUID, ADD COLUMN "revision" INTEGER NOT NULL DEFAULT 1;
ALTER TABLE "boot_menu" ADD COLUMN "deletion_id" UUID, ADD COLUMN "revision" INTEGER NOT NULL DEFAULT 1;
ALTER TABLE "edge" ADD COLUMN "revision" INTEGER NOT NULL DEFAULT 1;
ALTER TABLE "site" ADD COLUMN "personality" JSONB NOT NULL DEFAULT '{}';
ALTER TABLE "collection" ADD COLUMN "personality" JSONB NOT NULL DEFAULT '{}', ADD COLUMN "template_device_id" UUID;
ALTER TABLE "device" ADD COLUMN "personality" JSONB NOT NULL DEFAULT '{}', ADD COLUMN "vdisk_id" UUID;
ALTER TABLE "vdisk" ADD COLUMN "store_id" UUID, ADD COLUMN "note" TEXT NOT NULL DEFAULT '';
ALTER TABLE "vdisk_version" ADD COLUMN "note" TEXT NOT NULL DEFAULT '', ADD COLUMN "labels" TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[];

-- Names and addresses in the trash are free: two rows of one deletion had different ones already.
DROP INDEX "farm_organization_id_name_key";
DROP INDEX "site_organization_id_farm_id_name_key";
DROP INDEX "collection_organization_id_site_id_name_key";
DROP INDEX "device_organization_id_site_id_mac_key";
DROP INDEX "vdisk_organization_id_farm_id_name_key";
CREATE UNIQUE INDEX "farm_organization_id_name_deletion_id_key" ON "farm"("organization_id", "name", "deletion_id") NULLS NOT DISTINCT;
CREATE UNIQUE INDEX "site_organization_id_farm_id_name_deletion_id_key" ON "site"("organization_id", "farm_id", "name", "deletion_id") NULLS NOT DISTINCT;
CREATE UNIQUE INDEX "collection_organization_id_site_id_name_deletion_id_key" ON "collection"("organization_id", "site_id", "name", "deletion_id") NULLS NOT DISTINCT;
CREATE UNIQUE INDEX "device_organization_id_site_id_mac_deletion_id_key" ON "device"("organization_id", "site_id", "mac", "deletion_id") NULLS NOT DISTINCT;
CREATE UNIQUE INDEX "vdisk_organization_id_farm_id_name_deletion_id_key" ON "vdisk"("organization_id", "farm_id", "name", "deletion_id") NULLS NOT DISTINCT;
CREATE UNIQUE INDEX "store_organization_id_farm_id_name_deletion_id_key" ON "store"("organization_id", "farm_id", "name", "deletion_id") NULLS NOT DISTINCT;

-- CreateIndex
CREATE INDEX "deletion_organization_id_deleted_at_id_idx" ON "deletion"("organization_id", "deleted_at" DESC, "id" DESC);
CREATE INDEX "deletion_organization_id_object_id_idx" ON "deletion"("organization_id", "object_id");
CREATE INDEX "store_organization_id_name_id_idx" ON "store"("organization_id", "name", "id");
CREATE INDEX "device_organization_id_vdisk_id_idx" ON "device"("organization_id", "vdisk_id");
CREATE INDEX "vdisk_organization_id_store_id_idx" ON "vdisk"("organization_id", "store_id");

-- AddForeignKey
ALTER TABLE "deletion" ADD CONSTRAINT "deletion_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "store" ADD CONSTRAINT "store_organization_id_farm_id_fkey" FOREIGN KEY ("organization_id", "farm_id") REFERENCES "farm"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;
ALTER TABLE "vdisk" ADD CONSTRAINT "vdisk_organization_id_store_id_fkey" FOREIGN KEY ("organization_id", "store_id") REFERENCES "store"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "device" ADD CONSTRAINT "device_organization_id_vdisk_id_fkey" FOREIGN KEY ("organization_id", "vdisk_id") REFERENCES "vdisk"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "collection" ADD CONSTRAINT "collection_organization_id_template_device_id_fkey" FOREIGN KEY ("organization_id", "template_device_id") REFERENCES "device"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "farm" ADD CONSTRAINT "farm_organization_id_deletion_id_fkey" FOREIGN KEY ("organization_id", "deletion_id") REFERENCES "deletion"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "site" ADD CONSTRAINT "site_organization_id_deletion_id_fkey" FOREIGN KEY ("organization_id", "deletion_id") REFERENCES "deletion"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "collection" ADD CONSTRAINT "collection_organization_id_deletion_id_fkey" FOREIGN KEY ("organization_id", "deletion_id") REFERENCES "deletion"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "device" ADD CONSTRAINT "device_organization_id_deletion_id_fkey" FOREIGN KEY ("organization_id", "deletion_id") REFERENCES "deletion"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "vdisk" ADD CONSTRAINT "vdisk_organization_id_deletion_id_fkey" FOREIGN KEY ("organization_id", "deletion_id") REFERENCES "deletion"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "vdisk_version" ADD CONSTRAINT "vdisk_version_organization_id_deletion_id_fkey" FOREIGN KEY ("organization_id", "deletion_id") REFERENCES "deletion"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "boot_menu" ADD CONSTRAINT "boot_menu_organization_id_deletion_id_fkey" FOREIGN KEY ("organization_id", "deletion_id") REFERENCES "deletion"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;
ALTER TABLE "store" ADD CONSTRAINT "store_organization_id_deletion_id_fkey" FOREIGN KEY ("organization_id", "deletion_id") REFERENCES "deletion"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Each change that people make is counted, whoever writes it and however: what machines report is not in these lists.
CREATE FUNCTION next_revision() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  NEW.revision := OLD.revision + 1;
  RETURN NEW;
END
$$;
CREATE TRIGGER next_revision BEFORE UPDATE OF name, deletion_id ON "farm"
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();
CREATE TRIGGER next_revision BEFORE UPDATE OF farm_id, name, time_zone, unknown_devices, boot_program_set, capture, personality, deletion_id ON "site"
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();
CREATE TRIGGER next_revision BEFORE UPDATE OF site_id, name, vdisk_id, boot_program_set, boot_menu_id, personality, template_device_id, deletion_id ON "collection"
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();
CREATE TRIGGER next_revision BEFORE UPDATE OF site_id, collection_id, name, mac, enabled, boot_program_set, boot_menu_choice, boot_menu_id, tags, vdisk_id, personality, deletion_id ON "device"
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();
CREATE TRIGGER next_revision BEFORE UPDATE OF name, store_id, note, deletion_id ON "vdisk"
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();
CREATE TRIGGER next_revision BEFORE UPDATE OF note, labels, deletion_id ON "vdisk_version"
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();
CREATE TRIGGER next_revision BEFORE UPDATE OF name, timeout_ms, default_position, updated_at, deletion_id ON "boot_menu"
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();
CREATE TRIGGER next_revision BEFORE UPDATE OF name, note, deletion_id ON "store"
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();
CREATE TRIGGER next_revision BEFORE UPDATE OF name, site_id, weight, subnets, draining, revoked_at ON "edge"
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();

-- Nothing that is not in the trash lies in something that is, also where both are written at once: the parent's row is locked.
-- A parent that is absent or another organization's is none of its business: foreign keys and policies refuse that.
CREATE FUNCTION require_live_parent() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  in_trash boolean;
  before text := coalesce(current_setting('bootfarm.trash', true), '');
BEGIN
  IF NEW.deletion_id IS NOT NULL THEN
    RETURN NEW;
  END IF;
  PERFORM set_config('bootfarm.trash', 'shown', true);
  EXECUTE format(
    'SELECT deletion_id IS NOT NULL FROM public.%I WHERE organization_id = ($1).organization_id AND id = ($1).%I FOR KEY SHARE',
    TG_ARGV[0], TG_ARGV[0] || '_id'
  ) INTO in_trash USING NEW;
  PERFORM set_config('bootfarm.trash', before, true);
  IF in_trash THEN
    RAISE EXCEPTION 'the % of this % is in the trash', TG_ARGV[0], TG_TABLE_NAME USING ERRCODE = 'BF001';
  END IF;
  RETURN NEW;
END
$$;
CREATE TRIGGER live_parent BEFORE INSERT OR UPDATE OF farm_id, deletion_id ON "site"
  FOR EACH ROW EXECUTE FUNCTION require_live_parent('farm');
CREATE TRIGGER live_parent BEFORE INSERT OR UPDATE OF farm_id, deletion_id ON "vdisk"
  FOR EACH ROW EXECUTE FUNCTION require_live_parent('farm');
CREATE TRIGGER live_parent BEFORE INSERT OR UPDATE OF farm_id, deletion_id ON "store"
  FOR EACH ROW EXECUTE FUNCTION require_live_parent('farm');
CREATE TRIGGER live_parent BEFORE INSERT OR UPDATE OF site_id, deletion_id ON "collection"
  FOR EACH ROW EXECUTE FUNCTION require_live_parent('site');
CREATE TRIGGER live_parent BEFORE INSERT OR UPDATE OF collection_id, deletion_id ON "device"
  FOR EACH ROW EXECUTE FUNCTION require_live_parent('collection');
CREATE TRIGGER live_parent BEFORE INSERT OR UPDATE OF vdisk_id, deletion_id ON "vdisk_version"
  FOR EACH ROW EXECUTE FUNCTION require_live_parent('vdisk');

SELECT protect_tenant_table('deletion');
SELECT protect_tenant_table('store');

-- What lies in the trash is hidden from every query, whoever wrote it, but those of the trash, whose transactions say so.
CREATE POLICY not_in_trash ON "farm" AS RESTRICTIVE TO bootfarm_api
  USING (deletion_id IS NULL OR current_setting('bootfarm.trash', true) = 'shown') WITH CHECK (true);
CREATE POLICY not_in_trash ON "site" AS RESTRICTIVE TO bootfarm_api
  USING (deletion_id IS NULL OR current_setting('bootfarm.trash', true) = 'shown') WITH CHECK (true);
CREATE POLICY not_in_trash ON "collection" AS RESTRICTIVE TO bootfarm_api
  USING (deletion_id IS NULL OR current_setting('bootfarm.trash', true) = 'shown') WITH CHECK (true);
CREATE POLICY not_in_trash ON "device" AS RESTRICTIVE TO bootfarm_api
  USING (deletion_id IS NULL OR current_setting('bootfarm.trash', true) = 'shown') WITH CHECK (true);
CREATE POLICY not_in_trash ON "vdisk" AS RESTRICTIVE TO bootfarm_api
  USING (deletion_id IS NULL OR current_setting('bootfarm.trash', true) = 'shown') WITH CHECK (true);
CREATE POLICY not_in_trash ON "vdisk_version" AS RESTRICTIVE TO bootfarm_api
  USING (deletion_id IS NULL OR current_setting('bootfarm.trash', true) = 'shown') WITH CHECK (true);
CREATE POLICY not_in_trash ON "boot_menu" AS RESTRICTIVE TO bootfarm_api
  USING (deletion_id IS NULL OR current_setting('bootfarm.trash', true) = 'shown') WITH CHECK (true);
CREATE POLICY not_in_trash ON "store" AS RESTRICTIVE TO bootfarm_api
  USING (deletion_id IS NULL OR current_setting('bootfarm.trash', true) = 'shown') WITH CHECK (true);
