-- CreateTable
CREATE TABLE "report_gap" (
    "organization_id" UUID NOT NULL,
    "edge_id" UUID NOT NULL,
    "boot_epoch" BIGINT NOT NULL,
    "from_seq" BIGINT NOT NULL,
    "until_seq" BIGINT NOT NULL,
    "reason" TEXT NOT NULL,
    "from_at" TIMESTAMPTZ(3),
    "until_at" TIMESTAMPTZ(3),
    "declared_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "report_gap_pkey" PRIMARY KEY ("organization_id","edge_id","boot_epoch","from_seq")
);

-- CreateIndex
CREATE INDEX "report_gap_organization_id_edge_id_declared_at_idx" ON "report_gap"("organization_id", "edge_id", "declared_at");

-- AddForeignKey
ALTER TABLE "report_gap" ADD CONSTRAINT "report_gap_organization_id_edge_id_fkey" FOREIGN KEY ("organization_id", "edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- The API connects as a role that owns nothing, and sees the rows of one organization at a time.
SELECT protect_tenant_table('report_gap');
