-- AlterTable
ALTER TABLE "boot" ADD COLUMN     "write_cache_held" JSONB;
