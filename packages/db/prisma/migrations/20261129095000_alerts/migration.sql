-- Objectives for boots, and alerts: docs/decisions/0107-alerts.md.
-- A share of the boots of a site or a collection that is to be ready within so many seconds.
CREATE TABLE objective (
  organization_id UUID,
  -- The id of the site or collection.
  place_id UUID,
  site_id UUID NOT NULL,
  collection_id UUID,
  permille SMALLINT NOT NULL CHECK (permille BETWEEN 500 AND 999),
  seconds SMALLINT NOT NULL CHECK (seconds BETWEEN 1 AND 1800),
  days SMALLINT NOT NULL CHECK (days BETWEEN 1 AND 90),
  counted_since TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, place_id),
  CHECK (place_id = coalesce(collection_id, site_id)),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, collection_id) REFERENCES collection ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX ON objective (organization_id, site_id);
CREATE INDEX ON objective (organization_id, collection_id);
SELECT protect_tenant_table('objective');

-- Boots that count for an objective, by the hour in which they started, and those that missed it.
CREATE TABLE objective_hour (
  organization_id UUID,
  place_id UUID,
  hour TIMESTAMPTZ(3),
  boots INTEGER NOT NULL,
  missed INTEGER NOT NULL,
  PRIMARY KEY (organization_id, place_id, hour),
  FOREIGN KEY (organization_id, place_id) REFERENCES objective ON UPDATE CASCADE ON DELETE CASCADE
) WITH (fillfactor = 70);
SELECT protect_tenant_table('objective_hour');

-- Failed boots of a site by cause, or silent ones (`silent`), by the hour in which they started.
CREATE TABLE cause_hour (
  organization_id UUID,
  site_id UUID,
  cause TEXT,
  hour TIMESTAMPTZ(3),
  boots INTEGER NOT NULL,
  PRIMARY KEY (organization_id, site_id, cause, hour),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE
) WITH (fillfactor = 70);
CREATE INDEX ON cause_hour (organization_id, hour);
SELECT protect_tenant_table('cause_hour');

CREATE TYPE "AlertKind" AS ENUM ('objective', 'failures');
CREATE TABLE alert (
  organization_id UUID,
  id UUID,
  kind "AlertKind" NOT NULL,
  site_id UUID NOT NULL,
  collection_id UUID,
  cause TEXT,
  -- The figures of the last evaluation: apps/api/src/alert/schema.ts.
  figures JSONB NOT NULL,
  boot_count INTEGER NOT NULL,
  -- Boots of the hour of first_at that started before it.
  before_count INTEGER NOT NULL,
  first_at TIMESTAMPTZ(3) NOT NULL,
  last_at TIMESTAMPTZ(3) NOT NULL,
  opened_at TIMESTAMPTZ(3) NOT NULL,
  closed_at TIMESTAMPTZ(3),
  acknowledged_at TIMESTAMPTZ(3),
  acknowledged_by_user_id UUID,
  acknowledged_by_name TEXT,
  PRIMARY KEY (organization_id, id),
  FOREIGN KEY (organization_id, site_id) REFERENCES site ON UPDATE CASCADE ON DELETE CASCADE,
  FOREIGN KEY (organization_id, collection_id) REFERENCES collection ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE UNIQUE INDEX alert_open ON alert (organization_id, kind, site_id, collection_id, cause) NULLS NOT DISTINCT
  WHERE closed_at IS NULL;
CREATE INDEX ON alert (organization_id, opened_at DESC, id DESC);
CREATE INDEX ON alert (organization_id, closed_at);
CREATE INDEX ON alert (organization_id, site_id, opened_at);
CREATE INDEX ON alert (organization_id, collection_id);
SELECT protect_tenant_table('alert');

-- Members who get alerts by mail. Quiet hours are times of day in the zone; both null: there are none.
CREATE TABLE alert_subscription (
  organization_id UUID,
  user_id UUID,
  quiet_from TEXT,
  quiet_to TEXT,
  time_zone TEXT NOT NULL,
  -- Alerts that opened or closed until then were mailed, or were not for this member.
  mailed_until TIMESTAMPTZ(3) NOT NULL,
  PRIMARY KEY (organization_id, user_id),
  FOREIGN KEY (organization_id, user_id) REFERENCES membership ON UPDATE CASCADE ON DELETE CASCADE
);
SELECT protect_tenant_table('alert_subscription');

-- Organizations with boots that started since then, with open alerts, or with alerts to mail.
CREATE FUNCTION organizations_to_watch(since timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT DISTINCT boot_rollup.organization_id FROM public.boot_rollup
    WHERE boot_rollup.grain = 'hour' AND boot_rollup.starts_at >= organizations_to_watch.since
  UNION SELECT DISTINCT alert.organization_id FROM public.alert WHERE alert.closed_at IS NULL
  UNION SELECT subscription.organization_id FROM public.alert_subscription AS subscription
    WHERE EXISTS (SELECT FROM public.alert WHERE alert.organization_id = subscription.organization_id
      AND (alert.opened_at > subscription.mailed_until OR alert.closed_at > subscription.mailed_until))
$$;
GRANT EXECUTE ON FUNCTION organizations_to_watch(timestamptz) TO bootfarm_api;
