-- Runs that are there already are no news: they get the default, which is for them alone.
ALTER TABLE "schedule_run" ADD COLUMN     "told_at" TIMESTAMPTZ(3) DEFAULT CURRENT_TIMESTAMP;
ALTER TABLE "schedule_run" ALTER COLUMN "told_at" DROP DEFAULT;

-- not expand-only: no row is in this index yet, and of each schedule there are 1,000 runs at most to look at
CREATE INDEX "schedule_run_untold" ON "schedule_run"("organization_id", "instant") WHERE "told_at" IS NULL;
