-- Devices that asked another edge of their site to go on and were sent back, since the edge that was gone has what they wrote.
CREATE TABLE "boot_wait" (
    "organization_id" UUID NOT NULL,
    "boot_id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "mac" TEXT NOT NULL,
    "edge_id" UUID NOT NULL,
    "asked_edge_id" UUID NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "waits_since" TIMESTAMPTZ(3) NOT NULL,
    "asked_us" BIGINT NOT NULL,
    "resumed_us" BIGINT,
    "received_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "boot_wait_pkey" PRIMARY KEY ("organization_id","boot_id")
);

-- CreateIndex
CREATE INDEX "boot_wait_organization_id_site_id_mac_idx" ON "boot_wait"("organization_id", "site_id", "mac");

-- CreateIndex
CREATE INDEX "boot_wait_organization_id_asked_edge_id_received_at_idx" ON "boot_wait"("organization_id", "asked_edge_id", "received_at");

-- AddForeignKey
ALTER TABLE "boot_wait" ADD CONSTRAINT "boot_wait_organization_id_edge_id_fkey" FOREIGN KEY ("organization_id", "edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot_wait" ADD CONSTRAINT "boot_wait_organization_id_asked_edge_id_fkey" FOREIGN KEY ("organization_id", "asked_edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

SELECT protect_tenant_table('boot_wait');
