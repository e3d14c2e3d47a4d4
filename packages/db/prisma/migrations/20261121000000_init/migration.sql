-- CreateEnum
CREATE TYPE "BootOutcome" AS ENUM ('ready', 'failed', 'silent', 'superseded');

-- CreateEnum
CREATE TYPE "UnknownDevices" AS ENUM ('ignore', 'boot');

-- CreateEnum
CREATE TYPE "Role" AS ENUM ('owner', 'admin', 'operator', 'viewer');

-- CreateTable
CREATE TABLE "user" (
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "email" TEXT NOT NULL,
    "email_verified" BOOLEAN NOT NULL DEFAULT false,
    "image" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "user_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "session" (
    "id" UUID NOT NULL,
    "token" TEXT NOT NULL,
    "user_id" UUID NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "ip_address" TEXT,
    "user_agent" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "session_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "account" (
    "id" UUID NOT NULL,
    "account_id" TEXT NOT NULL,
    "provider_id" TEXT NOT NULL,
    "user_id" UUID NOT NULL,
    "access_token" TEXT,
    "refresh_token" TEXT,
    "id_token" TEXT,
    "access_token_expires_at" TIMESTAMPTZ(3),
    "refresh_token_expires_at" TIMESTAMPTZ(3),
    "scope" TEXT,
    "password" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "account_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "verification" (
    "id" UUID NOT NULL,
    "identifier" TEXT NOT NULL,
    "value" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "verification_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "boot" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "edge_id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "device_id" UUID,
    "mac" TEXT NOT NULL,
    "revision" BIGINT NOT NULL,
    "change" BIGINT NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "received_at" TIMESTAMPTZ(3) NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,
    "outcome" "BootOutcome",
    "failed_phase" TEXT,
    "failed_cause" TEXT,
    "failed_text" TEXT,
    "last_phase" TEXT,
    "total_us" BIGINT NOT NULL,
    "bytes_out" BIGINT NOT NULL,
    "retries" BIGINT NOT NULL,
    "simulated" BOOLEAN NOT NULL,
    "generated" BOOLEAN NOT NULL,
    "vdisk_id" UUID,
    "version_id" UUID,
    "phases" JSONB NOT NULL,
    "facts" JSONB NOT NULL,

    CONSTRAINT "boot_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "device" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "collection_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "mac" TEXT NOT NULL,
    "enabled" BOOLEAN NOT NULL DEFAULT true,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "last_boot_id" UUID,
    "last_boot_started_at" TIMESTAMPTZ(3),
    "last_boot_outcome" "BootOutcome",
    "last_boot_total_us" BIGINT,

    CONSTRAINT "device_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "power_on" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "device_id" UUID NOT NULL,
    "requested_by_user_id" UUID,
    "requested_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "power_on_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "edge" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "public_key" TEXT NOT NULL,
    "arch" TEXT NOT NULL,
    "agent_version" TEXT NOT NULL,
    "enrolled_at" TIMESTAMPTZ(3) NOT NULL,
    "revoked_at" TIMESTAMPTZ(3),
    "boot_epoch" BIGINT NOT NULL DEFAULT 0,
    "heartbeat_epoch" BIGINT NOT NULL DEFAULT 0,
    "heartbeat_counter" BIGINT NOT NULL DEFAULT 0,
    "heartbeat_at" TIMESTAMPTZ(3),
    "heartbeat" JSONB,
    "clock_offset_ms" BIGINT,

    CONSTRAINT "edge_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "join_token" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "token_hash" TEXT NOT NULL,
    "created_by_user_id" UUID,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "used_at" TIMESTAMPTZ(3),
    "edge_id" UUID,

    CONSTRAINT "join_token_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "desired_state" (
    "organization_id" UUID NOT NULL,
    "edge_id" UUID NOT NULL,
    "incarnation" INTEGER NOT NULL,
    "counter" BIGINT NOT NULL,
    "content_hash" TEXT NOT NULL,
    "payload" TEXT NOT NULL,
    "signature" TEXT NOT NULL,
    "signing_key_id" UUID NOT NULL,
    "issued_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "desired_state_pkey" PRIMARY KEY ("organization_id","edge_id")
);

-- CreateTable
CREATE TABLE "report_cursor" (
    "organization_id" UUID NOT NULL,
    "edge_id" UUID NOT NULL,
    "boot_epoch" BIGINT NOT NULL,
    "acked_seq" BIGINT NOT NULL DEFAULT 0,
    "lost_count" BIGINT NOT NULL DEFAULT 0,
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "report_cursor_pkey" PRIMARY KEY ("organization_id","edge_id","boot_epoch")
);

-- CreateTable
CREATE TABLE "farm" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "farm_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "site" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "farm_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "time_zone" TEXT NOT NULL,
    "unknown_devices" "UnknownDevices" NOT NULL DEFAULT 'ignore',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "site_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "collection" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "vdisk_id" UUID,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "collection_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "organization" (
    "id" UUID NOT NULL,
    "slug" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "state_incarnation" INTEGER NOT NULL DEFAULT 1,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "organization_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "membership" (
    "organization_id" UUID NOT NULL,
    "user_id" UUID NOT NULL,
    "role" "Role" NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "membership_pkey" PRIMARY KEY ("organization_id","user_id")
);

-- CreateTable
CREATE TABLE "signing_key" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "public_key" TEXT NOT NULL,
    "seed" BYTEA NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "signing_key_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "boot_feed" (
    "organization_id" UUID NOT NULL,
    "last_change" BIGINT NOT NULL DEFAULT 0,

    CONSTRAINT "boot_feed_pkey" PRIMARY KEY ("organization_id")
);

-- CreateTable
CREATE TABLE "vdisk" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "farm_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "vdisk_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateTable
CREATE TABLE "vdisk_version" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "vdisk_id" UUID NOT NULL,
    "number" INTEGER NOT NULL,
    "size_bytes" BIGINT NOT NULL,
    "disk_path" TEXT NOT NULL,
    "kernel_path" TEXT,
    "initrd_path" TEXT,
    "command_line" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "vdisk_version_pkey" PRIMARY KEY ("organization_id","id")
);

-- CreateIndex
CREATE UNIQUE INDEX "user_email_key" ON "user"("email");

-- CreateIndex
CREATE UNIQUE INDEX "session_token_key" ON "session"("token");

-- CreateIndex
CREATE INDEX "session_user_id_idx" ON "session"("user_id");

-- CreateIndex
CREATE INDEX "account_user_id_idx" ON "account"("user_id");

-- CreateIndex
CREATE UNIQUE INDEX "account_provider_id_account_id_key" ON "account"("provider_id", "account_id");

-- CreateIndex
CREATE INDEX "verification_identifier_idx" ON "verification"("identifier");

-- CreateIndex
CREATE INDEX "boot_organization_id_started_at_id_idx" ON "boot"("organization_id", "started_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "boot_organization_id_device_id_started_at_id_idx" ON "boot"("organization_id", "device_id", "started_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "boot_organization_id_site_id_started_at_id_idx" ON "boot"("organization_id", "site_id", "started_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "boot_organization_id_outcome_started_at_id_idx" ON "boot"("organization_id", "outcome", "started_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "boot_organization_id_change_idx" ON "boot"("organization_id", "change");

-- CreateIndex
CREATE INDEX "device_organization_id_name_id_idx" ON "device"("organization_id", "name", "id");

-- CreateIndex
CREATE INDEX "device_organization_id_collection_id_name_id_idx" ON "device"("organization_id", "collection_id", "name", "id");

-- CreateIndex
CREATE INDEX "device_organization_id_last_boot_outcome_name_id_idx" ON "device"("organization_id", "last_boot_outcome", "name", "id");

-- CreateIndex
CREATE UNIQUE INDEX "device_organization_id_site_id_mac_key" ON "device"("organization_id", "site_id", "mac");

-- CreateIndex
CREATE INDEX "power_on_organization_id_expires_at_idx" ON "power_on"("organization_id", "expires_at");

-- CreateIndex
CREATE INDEX "power_on_organization_id_device_id_requested_at_idx" ON "power_on"("organization_id", "device_id", "requested_at");

-- CreateIndex
CREATE UNIQUE INDEX "edge_id_key" ON "edge"("id");

-- CreateIndex
CREATE UNIQUE INDEX "edge_public_key_key" ON "edge"("public_key");

-- CreateIndex
CREATE INDEX "edge_organization_id_name_id_idx" ON "edge"("organization_id", "name", "id");

-- CreateIndex
CREATE INDEX "edge_organization_id_site_id_idx" ON "edge"("organization_id", "site_id");

-- CreateIndex
CREATE UNIQUE INDEX "join_token_token_hash_key" ON "join_token"("token_hash");

-- CreateIndex
CREATE UNIQUE INDEX "farm_organization_id_name_key" ON "farm"("organization_id", "name");

-- CreateIndex
CREATE INDEX "site_organization_id_name_id_idx" ON "site"("organization_id", "name", "id");

-- CreateIndex
CREATE UNIQUE INDEX "site_organization_id_farm_id_name_key" ON "site"("organization_id", "farm_id", "name");

-- CreateIndex
CREATE INDEX "collection_organization_id_name_id_idx" ON "collection"("organization_id", "name", "id");

-- CreateIndex
CREATE UNIQUE INDEX "collection_organization_id_site_id_name_key" ON "collection"("organization_id", "site_id", "name");

-- CreateIndex
CREATE UNIQUE INDEX "organization_slug_key" ON "organization"("slug");

-- CreateIndex
CREATE INDEX "membership_user_id_created_at_idx" ON "membership"("user_id", "created_at");

-- CreateIndex
CREATE INDEX "vdisk_organization_id_name_id_idx" ON "vdisk"("organization_id", "name", "id");

-- CreateIndex
CREATE UNIQUE INDEX "vdisk_organization_id_farm_id_name_key" ON "vdisk"("organization_id", "farm_id", "name");

-- CreateIndex
CREATE UNIQUE INDEX "vdisk_version_organization_id_vdisk_id_number_key" ON "vdisk_version"("organization_id", "vdisk_id", "number");

-- AddForeignKey
ALTER TABLE "session" ADD CONSTRAINT "session_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "user"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "account" ADD CONSTRAINT "account_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "user"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot" ADD CONSTRAINT "boot_organization_id_edge_id_fkey" FOREIGN KEY ("organization_id", "edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot" ADD CONSTRAINT "boot_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot" ADD CONSTRAINT "boot_organization_id_device_id_fkey" FOREIGN KEY ("organization_id", "device_id") REFERENCES "device"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "device" ADD CONSTRAINT "device_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "device" ADD CONSTRAINT "device_organization_id_collection_id_fkey" FOREIGN KEY ("organization_id", "collection_id") REFERENCES "collection"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "power_on" ADD CONSTRAINT "power_on_organization_id_device_id_fkey" FOREIGN KEY ("organization_id", "device_id") REFERENCES "device"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "edge" ADD CONSTRAINT "edge_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "join_token" ADD CONSTRAINT "join_token_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "join_token" ADD CONSTRAINT "join_token_organization_id_edge_id_fkey" FOREIGN KEY ("organization_id", "edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "desired_state" ADD CONSTRAINT "desired_state_organization_id_edge_id_fkey" FOREIGN KEY ("organization_id", "edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "desired_state" ADD CONSTRAINT "desired_state_organization_id_signing_key_id_fkey" FOREIGN KEY ("organization_id", "signing_key_id") REFERENCES "signing_key"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "report_cursor" ADD CONSTRAINT "report_cursor_organization_id_edge_id_fkey" FOREIGN KEY ("organization_id", "edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "farm" ADD CONSTRAINT "farm_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "site" ADD CONSTRAINT "site_organization_id_farm_id_fkey" FOREIGN KEY ("organization_id", "farm_id") REFERENCES "farm"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "collection" ADD CONSTRAINT "collection_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "collection" ADD CONSTRAINT "collection_organization_id_vdisk_id_fkey" FOREIGN KEY ("organization_id", "vdisk_id") REFERENCES "vdisk"("organization_id", "id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "membership" ADD CONSTRAINT "membership_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "membership" ADD CONSTRAINT "membership_user_id_fkey" FOREIGN KEY ("user_id") REFERENCES "user"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "signing_key" ADD CONSTRAINT "signing_key_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot_feed" ADD CONSTRAINT "boot_feed_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "vdisk" ADD CONSTRAINT "vdisk_organization_id_farm_id_fkey" FOREIGN KEY ("organization_id", "farm_id") REFERENCES "farm"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "vdisk_version" ADD CONSTRAINT "vdisk_version_organization_id_vdisk_id_fkey" FOREIGN KEY ("organization_id", "vdisk_id") REFERENCES "vdisk"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;
