-- AlterEnum
ALTER TYPE "StoreJobKind" ADD VALUE 'clear_profile';

-- AlterTable
ALTER TABLE "edge_version" ADD COLUMN     "boot_profiles" JSONB;
