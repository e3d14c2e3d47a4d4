-- New keys of edges and of organizations, and edges whose version is not taken.

ALTER TABLE "edge" ADD COLUMN "rotate_key_from" TEXT,
ADD COLUMN "key_rotated_at" TIMESTAMPTZ(3),
ADD COLUMN "refused_code" TEXT,
ADD COLUMN "refused_version" INTEGER,
ADD COLUMN "refused_at" TIMESTAMPTZ(3);

CREATE TABLE "edge_key" (
    "organization_id" UUID NOT NULL,
    "edge_id" UUID NOT NULL,
    "public_key" TEXT NOT NULL,
    "previous_key" TEXT NOT NULL,
    "signature" TEXT NOT NULL,
    "rotated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "edge_key_pkey" PRIMARY KEY ("organization_id","edge_id","public_key")
);
ALTER TABLE "edge_key" ADD CONSTRAINT "edge_key_organization_id_edge_id_fkey"
  FOREIGN KEY ("organization_id", "edge_id") REFERENCES "edge"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;
SELECT protect_tenant_table('edge_key');

ALTER TABLE "signing_key" ADD COLUMN "previous_key" TEXT,
ADD COLUMN "statement" TEXT;
-- Two that rotate at once: the second begins where the first ended.
CREATE UNIQUE INDEX "signing_key_organization_id_previous_key_key" ON "signing_key"("organization_id", "previous_key");
