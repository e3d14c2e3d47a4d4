-- AlterTable
ALTER TABLE "device" ADD COLUMN     "tags" TEXT[] NOT NULL DEFAULT ARRAY[]::TEXT[];

-- CreateIndex
CREATE INDEX "device_tags_idx" ON "device" USING GIN ("tags");
