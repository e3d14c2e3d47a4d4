-- The one edge that keeps what a device writes, and the one that is to do so next.
ALTER TABLE "device" ADD COLUMN "home_edge_id" UUID,
ADD COLUMN "next_home_edge_id" UUID;
-- An edge lets go of what a device writes.
ALTER TYPE "StoreJobKind" ADD VALUE 'release_home';
