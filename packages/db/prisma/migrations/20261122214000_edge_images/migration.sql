-- What edges' stores hold that is no version of any vDisk, and the work of taking it up.
ALTER TYPE "StoreJobKind" ADD VALUE 'adopt';

-- CreateTable
CREATE TABLE "edge_image" (
    "organization_id" UUID NOT NULL,
    "edge_id" UUID NOT NULL,
    "version_id" UUID NOT NULL,
    "state" "EdgeVersionState" NOT NULL,
    "root" BYTEA,
    "name" TEXT NOT NULL DEFAULT '',
    "size_bytes" BIGINT,
    "made_at" TIMESTAMPTZ(3),
    "has_kernel" BOOLEAN NOT NULL DEFAULT false,
    "made_for_id" UUID,
    "parent_version_id" UUID,
    "own_bytes" BIGINT NOT NULL,
    "shared_bytes" BIGINT NOT NULL,
    "reclaimable_bytes" BIGINT NOT NULL,
    "reported_at" TIMESTAMPTZ(3) NOT NULL,
    "scan" BIGINT NOT NULL,

    CONSTRAINT "edge_image_pkey" PRIMARY KEY ("organization_id","edge_id","version_id")
);

-- CreateIndex
CREATE INDEX "edge_image_organization_id_version_id_idx" ON "edge_image"("organization_id", "version_id");

-- AddForeignKey
ALTER TABLE "edge_image" ADD CONSTRAINT "edge_image_organization_id_edge_id_fkey" FOREIGN KEY ("organization_id", "edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

SELECT protect_tenant_table('edge_image');
