-- CreateEnum
CREATE TYPE "ScheduleAction" AS ENUM ('power_on');

-- CreateEnum
CREATE TYPE "SchedulePower" AS ENUM ('wake_on_lan', 'hook', 'both');

-- CreateEnum
CREATE TYPE "ScheduleKind" AS ENUM ('once', 'cron');

-- CreateEnum
CREATE TYPE "ScheduleTargetKind" AS ENUM ('device', 'collection', 'tag');

-- CreateEnum
CREATE TYPE "ScheduleRunState" AS ENUM ('waiting', 'running', 'done', 'missed', 'stopped');

-- CreateEnum
CREATE TYPE "ScheduleRunDeviceState" AS ENUM ('waiting', 'sent', 'booting', 'ready', 'failed', 'not_seen', 'skipped');

-- CreateTable
CREATE TABLE "schedule" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "farm_id" UUID NOT NULL,
    "site_id" UUID,
    "name" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "action" "ScheduleAction" NOT NULL DEFAULT 'power_on',
    "power" "SchedulePower" NOT NULL DEFAULT 'wake_on_lan',
    "rate_per_minute" INTEGER NOT NULL,
    "kind" "ScheduleKind" NOT NULL,
    "once_at" TIMESTAMPTZ(3),
    "cron" TEXT,
    "time_zone" TEXT NOT NULL,
    "instants" TIMESTAMPTZ(3)[] NOT NULL DEFAULT ARRAY[]::TIMESTAMPTZ(3)[],
    "renew_at" TIMESTAMPTZ(3),
    "prepared_until" TIMESTAMPTZ(3) NOT NULL,
    "revision" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "schedule_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "schedule_target" (
    "organization_id" UUID NOT NULL,
    "schedule_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "kind" "ScheduleTargetKind" NOT NULL,
    "device_id" UUID,
    "collection_id" UUID,
    "tag" TEXT,

    CONSTRAINT "schedule_target_pkey" PRIMARY KEY ("organization_id","schedule_id","position")
);

-- CreateTable
CREATE TABLE "schedule_run" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "schedule_id" UUID NOT NULL,
    "instant" TIMESTAMPTZ(3) NOT NULL,
    "state" "ScheduleRunState" NOT NULL DEFAULT 'waiting',
    "reason" TEXT,
    "requested_by_user_id" UUID,
    "action" "ScheduleAction" NOT NULL,
    "power" "SchedulePower" NOT NULL,
    "rate_per_minute" INTEGER NOT NULL,
    "started_at" TIMESTAMPTZ(3),
    "ended_at" TIMESTAMPTZ(3),
    "closes_at" TIMESTAMPTZ(3) NOT NULL,
    "closed_at" TIMESTAMPTZ(3),
    "device_count" INTEGER NOT NULL,
    "waiting_count" INTEGER NOT NULL DEFAULT 0,
    "sent_count" INTEGER NOT NULL DEFAULT 0,
    "booting_count" INTEGER NOT NULL DEFAULT 0,
    "ready_count" INTEGER NOT NULL DEFAULT 0,
    "failed_count" INTEGER NOT NULL DEFAULT 0,
    "not_seen_count" INTEGER NOT NULL DEFAULT 0,
    "skipped_count" INTEGER NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "schedule_run_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "schedule_run_device" (
    "organization_id" UUID NOT NULL,
    "run_id" UUID NOT NULL,
    "device_id" UUID NOT NULL,
    "position" INTEGER NOT NULL,
    "state" "ScheduleRunDeviceState" NOT NULL DEFAULT 'waiting',
    "reason" TEXT,
    "text" TEXT,
    "edge_id" UUID,
    "sent_at" TIMESTAMPTZ(3),
    "boot_id" UUID,

    CONSTRAINT "schedule_run_device_pkey" PRIMARY KEY ("organization_id","run_id","device_id")
);

-- CreateIndex
CREATE INDEX "schedule_organization_id_name_id_idx" ON "schedule"("organization_id", "name", "id");

-- CreateIndex
CREATE INDEX "schedule_organization_id_site_id_idx" ON "schedule"("organization_id", "site_id");

-- CreateIndex
CREATE INDEX "schedule_renew_at_idx" ON "schedule"("renew_at");

-- CreateIndex
CREATE UNIQUE INDEX "schedule_organization_id_farm_id_name_key" ON "schedule"("organization_id", "farm_id", "name");

-- CreateIndex
CREATE INDEX "schedule_target_organization_id_device_id_idx" ON "schedule_target"("organization_id", "device_id");

-- CreateIndex
CREATE INDEX "schedule_target_organization_id_collection_id_idx" ON "schedule_target"("organization_id", "collection_id");

-- CreateIndex
CREATE INDEX "schedule_run_organization_id_instant_id_idx" ON "schedule_run"("organization_id", "instant" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "schedule_run_closed_at_closes_at_idx" ON "schedule_run"("closed_at", "closes_at");

-- CreateIndex
CREATE UNIQUE INDEX "schedule_run_organization_id_schedule_id_instant_key" ON "schedule_run"("organization_id", "schedule_id", "instant");

-- CreateIndex
CREATE INDEX "schedule_run_device_organization_id_run_id_position_idx" ON "schedule_run_device"("organization_id", "run_id", "position");

-- CreateIndex
CREATE INDEX "schedule_run_device_organization_id_device_id_sent_at_idx" ON "schedule_run_device"("organization_id", "device_id", "sent_at" DESC);

-- CreateIndex
CREATE INDEX "schedule_run_device_organization_id_boot_id_idx" ON "schedule_run_device"("organization_id", "boot_id");

-- AddForeignKey
ALTER TABLE "schedule" ADD CONSTRAINT "schedule_organization_id_farm_id_fkey" FOREIGN KEY ("organization_id", "farm_id") REFERENCES "farm"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "schedule" ADD CONSTRAINT "schedule_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "schedule_target" ADD CONSTRAINT "schedule_target_organization_id_schedule_id_fkey" FOREIGN KEY ("organization_id", "schedule_id") REFERENCES "schedule"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "schedule_target" ADD CONSTRAINT "schedule_target_organization_id_device_id_fkey" FOREIGN KEY ("organization_id", "device_id") REFERENCES "device"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "schedule_target" ADD CONSTRAINT "schedule_target_organization_id_collection_id_fkey" FOREIGN KEY ("organization_id", "collection_id") REFERENCES "collection"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "schedule_run" ADD CONSTRAINT "schedule_run_organization_id_schedule_id_fkey" FOREIGN KEY ("organization_id", "schedule_id") REFERENCES "schedule"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "schedule_run_device" ADD CONSTRAINT "schedule_run_device_organization_id_run_id_fkey" FOREIGN KEY ("organization_id", "run_id") REFERENCES "schedule_run"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "schedule_run_device" ADD CONSTRAINT "schedule_run_device_organization_id_device_id_fkey" FOREIGN KEY ("organization_id", "device_id") REFERENCES "device"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;



-- A target is one thing.
ALTER TABLE "schedule_target" ADD CONSTRAINT "schedule_target_one" CHECK (num_nonnulls(device_id, collection_id, tag) = 1);

-- The API connects as a role that owns nothing, and sees the rows of one organization at a time.
DO $$
BEGIN
  IF to_regprocedure('protect_tenant_table(regclass)') IS NOT NULL THEN
    PERFORM protect_tenant_table('schedule');
    PERFORM protect_tenant_table('schedule_target');
    PERFORM protect_tenant_table('schedule_run');
    PERFORM protect_tenant_table('schedule_run_device');
  END IF;
END
$$;
