-- AlterTable
ALTER TABLE "boot" ADD COLUMN     "silent_since" TIMESTAMPTZ(3);
