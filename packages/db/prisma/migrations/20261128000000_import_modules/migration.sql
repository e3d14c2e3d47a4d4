-- Drivers that an import adds to the initramfs that it makes. Earlier releases leave them out.
ALTER TABLE "store_job" ADD COLUMN "modules" TEXT[] DEFAULT ARRAY[]::TEXT[];
