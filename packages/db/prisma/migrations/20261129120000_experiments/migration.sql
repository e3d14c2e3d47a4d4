-- Experiments with settings of boots: docs/decisions/0108-tuning-lab.md.
CREATE TYPE "ExperimentState" AS ENUM ('running', 'paused', 'done', 'stopped');
CREATE TYPE "TrialState" AS ENUM ('waiting', 'ordered', 'booting', 'ready', 'failed', 'dropped');

-- Settings, `name=value`, of the boots of a collection's devices: apps/api/src/rules/boot-settings.ts.
ALTER TABLE collection ADD COLUMN boot_settings TEXT[] NOT NULL DEFAULT '{}';

CREATE TABLE experiment (
  organization_id UUID,
  id UUID,
  site_id UUID NOT NULL,
  name TEXT NOT NULL,
  state "ExperimentState" NOT NULL DEFAULT 'running',
  -- Why it was stopped, or ended early.
  reason TEXT,
  -- What is varied: `[{ setting, values }]`.
  factors JSONB NOT NULL,
  -- The settings of each cell, `[[name=value]]`; the first one is what devices have without the experiment.
  cells JSONB NOT NULL,
  repetitions SMALLINT NOT NULL,
  at_once SMALLINT NOT NULL,
  boot_seconds SMALLINT NOT NULL,
  seed INTEGER NOT NULL,
  created_by_name TEXT NOT NULL,
  created_at TIMESTAMPTZ(3) NOT NULL,
  -- From then on no boot gets its settings.
  ends_at TIMESTAMPTZ(3) NOT NULL,
  ended_at TIMESTAMPTZ(3),
  -- The cell that was applied to the collections of its devices.
  applied_cell SMALLINT,
  applied_at TIMESTAMPTZ(3),
  applied_by_name TEXT,
  revision INTEGER NOT NULL DEFAULT 1,
  PRIMARY KEY (organization_id, id),
  CONSTRAINT experiment_is_over CHECK ((state IN ('done', 'stopped')) = (ended_at IS NOT NULL)),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON experiment (organization_id, created_at DESC, id DESC);
CREATE INDEX ON experiment (organization_id, site_id);
CREATE INDEX experiment_open ON experiment (organization_id) WHERE state IN ('running', 'paused');

CREATE TABLE experiment_trial (
  organization_id UUID,
  id UUID,
  experiment_id UUID NOT NULL,
  site_id UUID NOT NULL,
  device_id UUID NOT NULL,
  -- The order of its device's trials.
  position SMALLINT NOT NULL,
  repetition SMALLINT NOT NULL,
  cell SMALLINT NOT NULL,
  -- Those of its cell: a state needs nothing else of the experiment.
  settings TEXT[] NOT NULL,
  state "TrialState" NOT NULL DEFAULT 'waiting',
  -- Orders to boot that were given for it.
  orders SMALLINT NOT NULL DEFAULT 0,
  ordered_at TIMESTAMPTZ(3),
  -- Until then a boot of the device gets its settings.
  until_at TIMESTAMPTZ(3),
  boot_id UUID,
  -- Why it failed, or was dropped.
  reason TEXT,
  duration_us BIGINT,
  -- `{ name, durationUs }` of each phase of a ready boot.
  phases JSONB,
  ended_at TIMESTAMPTZ(3),
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, experiment_id) REFERENCES experiment ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, device_id) REFERENCES device ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE UNIQUE INDEX experiment_trial_order ON experiment_trial (organization_id, experiment_id, device_id, position);
CREATE INDEX ON experiment_trial (organization_id, device_id);
CREATE INDEX ON experiment_trial (organization_id, boot_id);
CREATE INDEX experiment_trial_ordered ON experiment_trial (organization_id, site_id) WHERE state = 'ordered';

SELECT protect_tenant_table('experiment');
SELECT protect_tenant_table('experiment_trial');

-- Where an experiment is not over: the job looks at no others.
CREATE FUNCTION organizations_with_open_experiments() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT experiment.organization_id FROM public.experiment WHERE experiment.state IN ('running', 'paused')
$$;
GRANT EXECUTE ON FUNCTION organizations_with_open_experiments() TO bootfarm_api;

CREATE TRIGGER next_revision_of_boot_settings BEFORE UPDATE OF boot_settings ON collection
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION next_revision();

-- As in 20261127000000_device_keys, and the settings of boots.
SELECT wake_edges_on('collection',
  $$SELECT id, site_id, vdisk_id, boot_program_set, boot_menu_id, key_learn, key_without, boot_settings, deletion_id FROM %s$$,
  $$SELECT site_id FROM changed$$);
SELECT wake_edges_on('experiment_trial',
  $$SELECT organization_id, id, site_id, device_id, settings, until_at FROM %s WHERE state = 'ordered'$$,
  $$SELECT site_id FROM changed$$);
