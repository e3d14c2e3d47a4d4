-- Since when an edge is the one that keeps what a device writes; null: since before this was kept.
ALTER TABLE "device" ADD COLUMN "home_since" TIMESTAMPTZ(3);
