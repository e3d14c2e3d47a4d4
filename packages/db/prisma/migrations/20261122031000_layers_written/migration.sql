-- AlterTable
ALTER TABLE "edge_version" ADD COLUMN     "is_written" BOOLEAN;
