-- A promotion or a revert that waits until the edges hold its version: docs/decisions/0068. A vDisk has at most one.
CREATE TABLE waiting_promotion (
  organization_id UUID,
  vdisk_id UUID,
  version_id UUID NOT NULL,
  step TEXT NOT NULL,
  asked_at TIMESTAMPTZ(3) NOT NULL,
  asked_by_name TEXT NOT NULL,
  waits_until TIMESTAMPTZ(3) NOT NULL,
  given_up_at TIMESTAMPTZ(3),
  given_up_reason TEXT,
  PRIMARY KEY (organization_id, vdisk_id),
  FOREIGN KEY (organization_id, vdisk_id) REFERENCES vdisk ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, version_id) REFERENCES vdisk_version ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON waiting_promotion (organization_id, version_id);
SELECT protect_tenant_table('waiting_promotion');

CREATE FUNCTION organizations_with_promotions() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT organization_id FROM public.waiting_promotion WHERE given_up_at IS NULL
$$;
GRANT EXECUTE ON FUNCTION organizations_with_promotions() TO bootfarm_api;
