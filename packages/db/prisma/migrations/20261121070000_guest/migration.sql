-- CreateEnum
CREATE TYPE "PowerOrderKind" AS ENUM ('power_off', 'restart');

-- AlterTable
ALTER TABLE "boot" ADD COLUMN     "guest" JSONB,
ADD COLUMN     "write_cache_size_bytes" BIGINT,
ADD COLUMN     "write_cache_used_bytes" BIGINT;

-- AlterTable
ALTER TABLE "device" ADD COLUMN     "last_boot_write_cache_percent" INTEGER;

-- CreateTable
CREATE TABLE "power_order" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "device_id" UUID NOT NULL,
    "order" "PowerOrderKind" NOT NULL,
    "requested_by_user_id" UUID,
    "requested_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "taken_at" TIMESTAMPTZ(3),
    "taken_boot_id" UUID,

    CONSTRAINT "power_order_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateIndex
CREATE INDEX "power_order_organization_id_expires_at_idx" ON "power_order"("organization_id", "expires_at");

-- CreateIndex
CREATE INDEX "power_order_organization_id_device_id_requested_at_idx" ON "power_order"("organization_id", "device_id", "requested_at");

-- CreateIndex
CREATE INDEX "power_order_organization_id_taken_boot_id_idx" ON "power_order"("organization_id", "taken_boot_id");

-- CreateIndex
CREATE INDEX "device_organization_id_last_boot_write_cache_percent_idx" ON "device"("organization_id", "last_boot_write_cache_percent");

-- AddForeignKey
ALTER TABLE "power_order" ADD CONSTRAINT "power_order_organization_id_device_id_fkey" FOREIGN KEY ("organization_id", "device_id") REFERENCES "device"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "power_order" ADD CONSTRAINT "power_order_organization_id_taken_boot_id_fkey" FOREIGN KEY ("organization_id", "taken_boot_id") REFERENCES "boot"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;
