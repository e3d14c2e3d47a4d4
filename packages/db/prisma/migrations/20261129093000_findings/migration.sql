-- Causes of slower boots: docs/decisions/0105-causes-of-slower-boots.md.

-- How far the boots of an organization were watched: a number of boot_feed.
CREATE TABLE boot_watch (
  organization_id UUID PRIMARY KEY REFERENCES organization ON UPDATE CASCADE ON DELETE CASCADE,
  change BIGINT NOT NULL
);
SELECT protect_tenant_table('boot_watch');

-- Boots that were watched: each counts once, however often it is reported after its end.
CREATE TABLE watched_boot (
  organization_id UUID,
  boot_id UUID,
  PRIMARY KEY (organization_id, boot_id),
  FOREIGN KEY (organization_id, boot_id) REFERENCES boot_key ON UPDATE CASCADE ON DELETE CASCADE
);
SELECT protect_tenant_table('watched_boot');

-- Devices of one hardware, at one site, that boot the same vDisk.
CREATE TABLE boot_class (
  organization_id UUID,
  id UUID,
  site_id UUID NOT NULL,
  vdisk_id UUID NOT NULL,
  hardware TEXT NOT NULL,
  load TEXT NOT NULL,
  -- ClassState of apps/api/src/finding/detect/class-watch.ts: at most 40 KB before it is compressed.
  state JSONB NOT NULL,
  updated_at TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE UNIQUE INDEX boot_class_of ON boot_class (organization_id, site_id, vdisk_id, hardware, load);
CREATE INDEX ON boot_class (organization_id, updated_at);
SELECT protect_tenant_table('boot_class');

CREATE TABLE device_pace (
  organization_id UUID,
  class_id UUID,
  device_id UUID,
  count INTEGER NOT NULL,
  mean DOUBLE PRECISION NOT NULL,
  -- Its last boot in the class failed.
  failed BOOLEAN NOT NULL,
  PRIMARY KEY (organization_id, class_id, device_id),
  FOREIGN KEY (organization_id, class_id) REFERENCES boot_class ON UPDATE CASCADE ON DELETE CASCADE
) WITH (fillfactor = 70);
SELECT protect_tenant_table('device_pace');

CREATE TYPE "FindingKind" AS ENUM ('slower', 'failing');
CREATE TYPE "FindingFactor" AS ENUM ('version', 'edge_release', 'setting', 'segment');
CREATE TYPE "FindingState" AS ENUM ('open', 'acknowledged', 'muted', 'closed');

CREATE TABLE finding (
  organization_id UUID,
  id UUID,
  site_id UUID NOT NULL,
  vdisk_id UUID NOT NULL,
  vdisk_name TEXT NOT NULL,
  hardware TEXT NOT NULL,
  load TEXT NOT NULL,
  kind "FindingKind" NOT NULL,
  factor "FindingFactor" NOT NULL,
  value TEXT NOT NULL,
  value_name TEXT NOT NULL,
  state "FindingState" NOT NULL DEFAULT 'open',
  since TIMESTAMPTZ(3) NOT NULL,
  opened_at TIMESTAMPTZ(3) NOT NULL,
  checked_at TIMESTAMPTZ(3) NOT NULL,
  closed_at TIMESTAMPTZ(3),
  state_by_name TEXT,
  state_at TIMESTAMPTZ(3),
  audit_entry_id UUID,
  evidence JSONB NOT NULL,
  revision INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (organization_id, id),
  CONSTRAINT finding_is_over CHECK ((state = 'closed') = (closed_at IS NOT NULL)),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON finding (organization_id, opened_at DESC, id DESC);
CREATE INDEX ON finding (organization_id, site_id);
CREATE INDEX ON finding (organization_id, vdisk_id, value);
-- What is found again while it is open is the same.
CREATE UNIQUE INDEX finding_once ON finding (organization_id, site_id, vdisk_id, kind, factor, value) WHERE closed_at IS NULL;
SELECT protect_tenant_table('finding');

CREATE FUNCTION organizations_with_boots_to_watch() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT feed.organization_id FROM public.boot_feed AS feed
  LEFT JOIN public.boot_watch AS watch ON watch.organization_id = feed.organization_id
  WHERE watch.change IS DISTINCT FROM feed.last_change AND feed.last_change > 0
$$;
GRANT EXECUTE ON FUNCTION organizations_with_boots_to_watch() TO bootfarm_api;
