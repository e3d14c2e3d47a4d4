-- How a release reaches the edges of a farm, one wave of sites after the other (docs/decisions/0043).
CREATE TYPE "RolloutState" AS ENUM ('running', 'paused', 'done', 'cancelled');
CREATE TYPE "RolloutPause" AS ENUM ('by_hand', 'failed', 'silent', 'late');
CREATE TYPE "RolloutEdgeState" AS ENUM ('waiting', 'ordered', 'running', 'failed', 'silent', 'late', 'left');

CREATE TABLE rollout (
  organization_id UUID,
  id UUID,
  farm_id UUID NOT NULL,
  version TEXT NOT NULL,
  state "RolloutState" NOT NULL DEFAULT 'running',
  wave INTEGER NOT NULL DEFAULT 0,
  wave_count INTEGER NOT NULL,
  wave_started_at TIMESTAMPTZ(3),
  by_hand BOOLEAN NOT NULL,
  healthy_minutes INTEGER NOT NULL,
  pause_reason "RolloutPause",
  paused_edge_id UUID,
  paused_at TIMESTAMPTZ(3),
  watched_since TIMESTAMPTZ(3) NOT NULL,
  watched_at TIMESTAMPTZ(3) NOT NULL,
  created_by_name TEXT NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL,
  ended_at TIMESTAMPTZ(3),
  revision INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (organization_id, id),
  CONSTRAINT rollout_has_wave CHECK (wave >= 0 AND wave < wave_count),
  CONSTRAINT rollout_is_paused CHECK ((state = 'paused') = (pause_reason IS NOT NULL)),
  CONSTRAINT rollout_is_over CHECK ((state IN ('done', 'cancelled')) = (ended_at IS NOT NULL)),
  FOREIGN KEY (organization_id, farm_id) REFERENCES farm ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON rollout (organization_id, created_at DESC, id DESC);
CREATE INDEX ON rollout (organization_id, farm_id);
CREATE INDEX ON rollout (organization_id, state);
CREATE INDEX rollout_open ON rollout (organization_id) WHERE state IN ('running', 'paused');

CREATE TABLE rollout_site (
  organization_id UUID,
  rollout_id UUID,
  site_id UUID,
  wave INTEGER NOT NULL,
  PRIMARY KEY (organization_id, rollout_id, site_id),
  FOREIGN KEY (organization_id, rollout_id) REFERENCES rollout ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON rollout_site (organization_id, site_id);

CREATE TABLE rollout_edge (
  organization_id UUID,
  rollout_id UUID,
  edge_id UUID,
  site_id UUID NOT NULL,
  wave INTEGER NOT NULL,
  position INTEGER NOT NULL,
  state "RolloutEdgeState" NOT NULL DEFAULT 'waiting',
  cause TEXT,
  attempt INTEGER,
  ordered_at TIMESTAMPTZ(3),
  healthy_since TIMESTAMPTZ(3),
  former_version TEXT,
  former_wanted TEXT,
  PRIMARY KEY (organization_id, rollout_id, edge_id),
  FOREIGN KEY (organization_id, rollout_id) REFERENCES rollout ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON rollout_edge (organization_id, rollout_id, position);
CREATE INDEX ON rollout_edge (organization_id, edge_id);

SELECT protect_tenant_table('rollout');
SELECT protect_tenant_table('rollout_site');
SELECT protect_tenant_table('rollout_edge');

-- Where a rollout is not over: the job looks at no others.
CREATE FUNCTION organizations_with_open_rollouts() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT rollout.organization_id FROM public.rollout WHERE rollout.state IN ('running', 'paused')
$$;
GRANT EXECUTE ON FUNCTION organizations_with_open_rollouts() TO bootfarm_api;
