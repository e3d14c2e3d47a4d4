-- AlterEnum
ALTER TYPE "StoreJobKind" ADD VALUE 'drop_layer';

-- AlterTable
ALTER TABLE "store_job" ADD COLUMN     "device_id" UUID,
ADD COLUMN     "layer_class" "WriteCacheClass";

-- AlterTable
ALTER TABLE "device" ADD COLUMN     "layer_class" "WriteCacheClass",
ADD COLUMN     "layer_edge_id" UUID,
ADD COLUMN     "layer_version_id" UUID,
ADD COLUMN     "layer_bytes" BIGINT;

-- CreateIndex
-- not expand-only: a row for each device, some hundred thousand at most, whose new column is empty: it is done within a second
CREATE INDEX "device_organization_id_layer_version_id_idx" ON "device"("organization_id", "layer_version_id");
