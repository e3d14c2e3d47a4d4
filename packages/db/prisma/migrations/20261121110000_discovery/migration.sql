-- CreateEnum
CREATE TYPE "DiscoveryRequest" AS ENUM ('dhcp', 'tftp', 'http');

-- CreateEnum
CREATE TYPE "Capture" AS ENUM ('never', 'failed', 'always');

-- AlterTable
ALTER TABLE "collection" ADD COLUMN     "boot_program_set" TEXT;

-- AlterTable
ALTER TABLE "device" ADD COLUMN     "boot_program_set" TEXT;

-- AlterTable
ALTER TABLE "edge" ADD COLUMN     "draining" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "subnets" TEXT[],
ADD COLUMN     "weight" INTEGER NOT NULL DEFAULT 10;

-- AlterTable
ALTER TABLE "site" ADD COLUMN     "boot_program_set" TEXT,
ADD COLUMN     "capture" "Capture" NOT NULL DEFAULT 'failed',
ADD COLUMN     "edge_key" BYTEA;

-- CreateTable
CREATE TABLE "withdrawn_boot" (
    "organization_id" UUID NOT NULL,
    "boot_id" UUID NOT NULL,
    "edge_id" UUID NOT NULL,
    "to_edge_id" UUID,
    "withdrawn_at" TIMESTAMPTZ(3) NOT NULL,
    "change" BIGINT NOT NULL,

    CONSTRAINT "withdrawn_boot_pkey" PRIMARY KEY ("organization_id","boot_id")
);

-- CreateTable
CREATE TABLE "discovered_device" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "edge_id" UUID NOT NULL,
    "mac" TEXT NOT NULL,
    "machine_id" UUID,
    "vendor_class" TEXT,
    "user_class" TEXT,
    "host_name" TEXT,
    "client_arch" INTEGER,
    "ip" TEXT,
    "relay" TEXT,
    "asked" "DiscoveryRequest" NOT NULL,
    "first_seen_at" TIMESTAMPTZ(3) NOT NULL,
    "last_seen_at" TIMESTAMPTZ(3) NOT NULL,
    "requests" BIGINT NOT NULL,
    "ignored_at" TIMESTAMPTZ(3),

    CONSTRAINT "discovered_device_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "adoption_rule" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "mac_prefix" TEXT,
    "vendor_class_prefix" TEXT,
    "vendor_class_contains" TEXT,
    "architecture" TEXT,
    "relay_network" TEXT,
    "name_pattern" TEXT,
    "collection_id" UUID,
    "template_device_id" UUID,

    CONSTRAINT "adoption_rule_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateIndex
CREATE INDEX "withdrawn_boot_organization_id_change_idx" ON "withdrawn_boot"("organization_id", "change");

-- CreateIndex
CREATE INDEX "withdrawn_boot_organization_id_edge_id_withdrawn_at_idx" ON "withdrawn_boot"("organization_id", "edge_id", "withdrawn_at");

-- CreateIndex
CREATE INDEX "discovered_device_organization_id_first_seen_at_id_idx" ON "discovered_device"("organization_id", "first_seen_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "discovered_device_organization_id_site_id_last_seen_at_idx" ON "discovered_device"("organization_id", "site_id", "last_seen_at");

-- CreateIndex
CREATE INDEX "discovered_device_organization_id_edge_id_idx" ON "discovered_device"("organization_id", "edge_id");

-- CreateIndex
CREATE UNIQUE INDEX "discovered_device_organization_id_site_id_mac_key" ON "discovered_device"("organization_id", "site_id", "mac");

-- CreateIndex
CREATE UNIQUE INDEX "adoption_rule_organization_id_site_id_position_key" ON "adoption_rule"("organization_id", "site_id", "position");

-- AddForeignKey
ALTER TABLE "withdrawn_boot" ADD CONSTRAINT "withdrawn_boot_organization_id_edge_id_fkey" FOREIGN KEY ("organization_id", "edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "discovered_device" ADD CONSTRAINT "discovered_device_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "discovered_device" ADD CONSTRAINT "discovered_device_organization_id_edge_id_fkey" FOREIGN KEY ("organization_id", "edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "adoption_rule" ADD CONSTRAINT "adoption_rule_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "adoption_rule" ADD CONSTRAINT "adoption_rule_organization_id_collection_id_fkey" FOREIGN KEY ("organization_id", "collection_id") REFERENCES "collection"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "adoption_rule" ADD CONSTRAINT "adoption_rule_organization_id_template_device_id_fkey" FOREIGN KEY ("organization_id", "template_device_id") REFERENCES "device"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;


