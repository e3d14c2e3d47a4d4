-- CreateEnum
CREATE TYPE "BootMenuChoice" AS ENUM ('collection', 'none', 'own');

-- AlterTable
ALTER TABLE "boot" ADD COLUMN     "menu_entry" TEXT;

-- AlterTable
ALTER TABLE "collection" ADD COLUMN     "boot_menu_id" UUID;

-- AlterTable
ALTER TABLE "device" ADD COLUMN     "boot_menu_choice" "BootMenuChoice" NOT NULL DEFAULT 'collection',
ADD COLUMN     "boot_menu_id" UUID;

-- CreateTable
CREATE TABLE "boot_menu" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "farm_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "timeout_ms" INTEGER NOT NULL,
    "default_position" INTEGER NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "boot_menu_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "boot_menu_entry" (
    "organization_id" UUID NOT NULL,
    "menu_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "title" TEXT NOT NULL,
    "vdisk_id" UUID,
    "version_id" UUID,

    CONSTRAINT "boot_menu_entry_pkey" PRIMARY KEY ("organization_id","menu_id","position")
);

-- CreateTable
CREATE TABLE "boot_capture" (
    "organization_id" UUID NOT NULL,
    "boot_id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "received_at" TIMESTAMPTZ(3) NOT NULL,
    "packet_count" INTEGER NOT NULL,
    "size_bytes" INTEGER NOT NULL,
    "pcap" BYTEA NOT NULL,

    CONSTRAINT "boot_capture_pkey" PRIMARY KEY ("organization_id","boot_id")
);

-- CreateIndex
CREATE INDEX "boot_menu_organization_id_name_id_idx" ON "boot_menu"("organization_id", "name", "id");

-- CreateIndex
CREATE UNIQUE INDEX "boot_menu_organization_id_farm_id_name_key" ON "boot_menu"("organization_id", "farm_id", "name");

-- CreateIndex
CREATE INDEX "boot_menu_entry_organization_id_vdisk_id_idx" ON "boot_menu_entry"("organization_id", "vdisk_id");

-- CreateIndex
CREATE INDEX "boot_menu_entry_organization_id_version_id_idx" ON "boot_menu_entry"("organization_id", "version_id");

-- CreateIndex
CREATE INDEX "boot_capture_organization_id_site_id_received_at_boot_id_idx" ON "boot_capture"("organization_id", "site_id", "received_at" DESC, "boot_id" DESC);

-- CreateIndex
CREATE INDEX "boot_capture_received_at_idx" ON "boot_capture"("received_at");

-- CreateIndex
CREATE INDEX "collection_organization_id_boot_menu_id_idx" ON "collection"("organization_id", "boot_menu_id");

-- CreateIndex
CREATE INDEX "device_organization_id_boot_menu_id_idx" ON "device"("organization_id", "boot_menu_id");

-- AddForeignKey
ALTER TABLE "boot_menu" ADD CONSTRAINT "boot_menu_organization_id_farm_id_fkey" FOREIGN KEY ("organization_id", "farm_id") REFERENCES "farm"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot_menu_entry" ADD CONSTRAINT "boot_menu_entry_organization_id_menu_id_fkey" FOREIGN KEY ("organization_id", "menu_id") REFERENCES "boot_menu"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot_menu_entry" ADD CONSTRAINT "boot_menu_entry_organization_id_vdisk_id_fkey" FOREIGN KEY ("organization_id", "vdisk_id") REFERENCES "vdisk"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot_menu_entry" ADD CONSTRAINT "boot_menu_entry_organization_id_version_id_fkey" FOREIGN KEY ("organization_id", "version_id") REFERENCES "vdisk_version"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot_capture" ADD CONSTRAINT "boot_capture_organization_id_boot_id_fkey" FOREIGN KEY ("organization_id", "boot_id") REFERENCES "boot"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot_capture" ADD CONSTRAINT "boot_capture_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "device" ADD CONSTRAINT "device_organization_id_boot_menu_id_fkey" FOREIGN KEY ("organization_id", "boot_menu_id") REFERENCES "boot_menu"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "collection" ADD CONSTRAINT "collection_organization_id_boot_menu_id_fkey" FOREIGN KEY ("organization_id", "boot_menu_id") REFERENCES "boot_menu"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;


