-- A boot's summary and its detail go apart, each into partitions of a UTC day; sums over boots are kept as rollups.
-- The old table's rows are moved. An API of the release before answers its edges 500 until it is replaced: they send again.

ALTER TABLE "boot" RENAME TO "boot_unpartitioned";
ALTER TABLE "boot_capture" DROP CONSTRAINT "boot_capture_organization_id_boot_id_fkey";
ALTER TABLE "power_order" DROP CONSTRAINT "power_order_organization_id_taken_boot_id_fkey";

-- CreateEnum
CREATE TYPE "RollupGrain" AS ENUM ('hour', 'day');

-- CreateTable
CREATE TABLE "boot_key" (
    "organization_id" UUID NOT NULL,
    "boot_id" UUID NOT NULL,
    "received_on" DATE NOT NULL,
    "change" BIGINT NOT NULL
);

-- CreateTable
CREATE TABLE "boot_day" (
    "organization_id" UUID NOT NULL,
    "received_on" DATE NOT NULL,
    "earliest_started_at" TIMESTAMPTZ(3) NOT NULL
);

-- CreateTable
CREATE TABLE "boot" (
    "organization_id" UUID NOT NULL,
    "id" UUID NOT NULL,
    "received_on" DATE NOT NULL,
    "edge_id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "device_id" UUID,
    "mac" TEXT NOT NULL,
    "revision" BIGINT NOT NULL,
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
    "menu_entry" TEXT,
    "phases" JSONB NOT NULL,
    "write_cache_used_bytes" BIGINT,
    "write_cache_size_bytes" BIGINT
) PARTITION BY RANGE ("received_on");

-- CreateTable
CREATE TABLE "boot_detail" (
    "organization_id" UUID NOT NULL,
    "boot_id" UUID NOT NULL,
    "received_on" DATE NOT NULL,
    "phases" JSONB NOT NULL,
    "facts" JSONB NOT NULL,
    "guest" JSONB
) PARTITION BY RANGE ("received_on");

-- CreateTable
CREATE TABLE "boot_rollup" (
    "organization_id" UUID NOT NULL,
    "site_id" UUID NOT NULL,
    "grain" "RollupGrain" NOT NULL,
    "starts_at" TIMESTAMPTZ(3) NOT NULL,
    "booting_count" INTEGER NOT NULL DEFAULT 0,
    "ready_count" INTEGER NOT NULL DEFAULT 0,
    "failed_count" INTEGER NOT NULL DEFAULT 0,
    "silent_count" INTEGER NOT NULL DEFAULT 0,
    "superseded_count" INTEGER NOT NULL DEFAULT 0,
    "local_disk_count" INTEGER NOT NULL DEFAULT 0,
    "generated_count" INTEGER NOT NULL DEFAULT 0,
    "total_us_sum" BIGINT NOT NULL DEFAULT 0,
    "total_us_buckets" JSONB NOT NULL DEFAULT '{}',
    "phases" JSONB NOT NULL DEFAULT '{}',

    CONSTRAINT "boot_rollup_pkey" PRIMARY KEY ("organization_id","site_id","grain","starts_at")
);

-- A day's partition of `boot` or `boot_detail`. It is made apart and then attached: that locks neither readers nor writers.
-- A partition can be named in a statement and then goes by its own rights and row security, not its parent's: it has them, too,
-- and nobody but the owner may name it.
CREATE FUNCTION make_boot_partition(parent TEXT, of_day DATE) RETURNS VOID
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  partition TEXT := parent || to_char(of_day, '"_"YYYYMMDD');
  grantee TEXT;
BEGIN
  IF to_regclass('public.' || quote_ident(partition)) IS NOT NULL THEN RETURN; END IF;
  -- Room in each page: what is reported again of a boot stays where it is, and its indexes as they are.
  EXECUTE format('CREATE TABLE public.%I (LIKE public.%I INCLUDING ALL) WITH (fillfactor = 85)', partition, parent);
  PERFORM public.protect_tenant_table(to_regclass('public.' || quote_ident(partition)));
  FOR grantee IN
    SELECT DISTINCT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END
    FROM pg_class, aclexplode(relacl) AS acl
    WHERE pg_class.oid = to_regclass('public.' || quote_ident(partition)) AND acl.grantee <> relowner
  LOOP
    EXECUTE format('REVOKE ALL ON public.%I FROM %s', partition, grantee);
  END LOOP;
  EXECUTE format('ALTER TABLE public.%I ATTACH PARTITION public.%I FOR VALUES FROM (%L) TO (%L)', parent, partition, of_day, of_day + 1);
END $$;

-- Makes what is missing of the partitions of these days. Programs that ask at the same time wait for each other.
CREATE FUNCTION ensure_boot_partitions(first_day DATE, last_day DATE) RETURNS VOID
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  of_day DATE;
BEGIN
  IF last_day - first_day > 31 THEN RAISE EXCEPTION 'Partitions are made for at most 31 days at once.'; END IF;
  FOR of_day IN SELECT generate_series(first_day, last_day, INTERVAL '1 day')::DATE LOOP
    CONTINUE WHEN to_regclass('public.boot' || to_char(of_day, '"_"YYYYMMDD')) IS NOT NULL
      AND to_regclass('public.boot_detail' || to_char(of_day, '"_"YYYYMMDD')) IS NOT NULL;
    PERFORM pg_advisory_xact_lock(hashtextextended('boot partitions', 0));
    PERFORM public.make_boot_partition('boot', of_day);
    PERFORM public.make_boot_partition('boot_detail', of_day);
  END LOOP;
END $$;

-- Of these days, those with a partition of `boot` and of `boot_detail`.
CREATE FUNCTION boot_partitions_of(days DATE[]) RETURNS TABLE (of_day DATE, has_summaries BOOLEAN, has_details BOOLEAN)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT day, to_regclass('public.boot' || to_char(day, '"_"YYYYMMDD')) IS NOT NULL,
    to_regclass('public.boot_detail' || to_char(day, '"_"YYYYMMDD')) IS NOT NULL
  FROM unnest(days) AS day
$$;

-- Drops the partitions of the days before `first_kept`. It waits 3 s at most for those who read or write: all others would wait
-- behind it. Whoever called it calls it again later.
CREATE FUNCTION drop_boot_partitions(parent TEXT, first_kept DATE) RETURNS INTEGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  partition TEXT;
  dropped INTEGER := 0;
BEGIN
  PERFORM set_config('lock_timeout', '3s', true);
  IF parent NOT IN ('boot', 'boot_detail') THEN RAISE EXCEPTION 'There is no % in partitions of days.', parent; END IF;
  FOR partition IN
    SELECT child.relname FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid
    WHERE inhparent = to_regclass('public.' || parent) AND right(child.relname, 8) < to_char(first_kept, 'YYYYMMDD')
  LOOP
    EXECUTE format('DROP TABLE public.%I', partition);
    dropped := dropped + 1;
  END LOOP;
  RETURN dropped;
END $$;

-- Forgets up to `at_most` boots whose partition was dropped, so that an id may come again. What named them names nothing now.
CREATE FUNCTION forget_dropped_boots(first_kept DATE, at_most INTEGER) RETURNS INTEGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  forgotten INTEGER;
  organization_ids UUID[];
  boot_ids UUID[];
BEGIN
  WITH doomed AS (
    SELECT organization_id, boot_id FROM public.boot_key WHERE received_on < first_kept ORDER BY received_on LIMIT at_most
  ), untied AS (
    UPDATE public.power_order SET taken_boot_id = NULL FROM doomed
    WHERE power_order.organization_id = doomed.organization_id AND taken_boot_id = boot_id
  ) SELECT array_agg(boot_id), array_agg(organization_id) INTO boot_ids, organization_ids FROM doomed;
  DELETE FROM public.boot_key USING unnest(organization_ids, boot_ids) AS doomed (organization_id, boot_id)
    WHERE boot_key.organization_id = doomed.organization_id AND boot_key.boot_id = doomed.boot_id;
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  DELETE FROM public.boot_day WHERE received_on < first_kept;
  RETURN forgotten;
END $$;

CREATE FUNCTION forget_hour_rollups(first_kept TIMESTAMPTZ) RETURNS INTEGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  forgotten INTEGER;
BEGIN
  DELETE FROM public.boot_rollup WHERE grain = 'hour' AND starts_at < first_kept;
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  RETURN forgotten;
END $$;

-- The old rows, into the partitions of their days.
SELECT make_boot_partition(parent, of_day) FROM (
  SELECT DISTINCT (received_at AT TIME ZONE 'UTC')::DATE AS of_day FROM boot_unpartitioned
) AS days, (VALUES ('boot'), ('boot_detail')) AS parents (parent);

INSERT INTO boot_key (organization_id, boot_id, received_on, change)
  SELECT organization_id, id, (received_at AT TIME ZONE 'UTC')::DATE, change FROM boot_unpartitioned;

INSERT INTO boot_day (organization_id, received_on, earliest_started_at)
  SELECT organization_id, (received_at AT TIME ZONE 'UTC')::DATE, min(started_at) FROM boot_unpartitioned GROUP BY 1, 2;

INSERT INTO boot_detail (organization_id, boot_id, received_on, phases, facts, guest)
  SELECT organization_id, id, (received_at AT TIME ZONE 'UTC')::DATE, phases, facts, guest FROM boot_unpartitioned;

INSERT INTO boot (organization_id, id, received_on, edge_id, site_id, device_id, mac, revision, started_at, received_at,
    updated_at, outcome, failed_phase, failed_cause, failed_text, last_phase, total_us, bytes_out, retries, simulated,
    generated, vdisk_id, version_id, menu_entry, write_cache_used_bytes, write_cache_size_bytes, phases)
  SELECT organization_id, id, (received_at AT TIME ZONE 'UTC')::DATE, edge_id, site_id, device_id, mac, revision, started_at,
    received_at, updated_at, outcome, failed_phase, failed_cause, failed_text, last_phase, total_us, bytes_out, retries,
    simulated, generated, vdisk_id, version_id, menu_entry, write_cache_used_bytes, write_cache_size_bytes, coalesce((
      SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('name', phase->'name', 'startUs', phase->'startUs',
        'durationUs', phase->'durationUs')) ORDER BY place)
      FROM jsonb_array_elements(phases) WITH ORDINALITY AS list (phase, place)), '[]')
  FROM boot_unpartitioned;

-- As apps/api/src/domain/boot-rollup.ts sums them up; buckets as in time-sketch.ts beside it.
CREATE FUNCTION pg_temp.bucket_of(us BIGINT) RETURNS BIGINT LANGUAGE sql IMMUTABLE AS $$
  SELECT doublings * 32 + (capped >> doublings::INTEGER) FROM (
    SELECT capped, greatest(0, length(ltrim(capped::BIT(64)::TEXT, '0')) - 6) AS doublings
    FROM (SELECT least(greatest(us, 0), 1099511627775) AS capped) AS value
  ) AS scaled
$$;
CREATE FUNCTION pg_temp.buckets_of(times BIGINT[]) RETURNS JSONB LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(jsonb_object_agg(bucket, many), '{}') FROM (
    SELECT pg_temp.bucket_of(us) AS bucket, count(*) AS many FROM unnest(times) AS us GROUP BY 1
  ) AS counted
$$;
INSERT INTO boot_rollup (organization_id, site_id, grain, starts_at, booting_count, ready_count, failed_count, silent_count,
    superseded_count, local_disk_count, generated_count, total_us_sum, total_us_buckets, phases)
  SELECT counted.organization_id, counted.site_id, counted.grain, counted.starts_at, booting, ready, failed, silent,
    superseded, local_disk, generated, total_us_sum, pg_temp.buckets_of(ready_us), coalesce(phase_sums, '{}')
  FROM (
    SELECT organization_id, site_id, grain, date_trunc(grain::TEXT, started_at, 'UTC') AS starts_at,
      count(*) FILTER (WHERE outcome IS NULL) AS booting, count(*) FILTER (WHERE outcome = 'ready') AS ready,
      count(*) FILTER (WHERE outcome = 'failed') AS failed, count(*) FILTER (WHERE outcome = 'silent') AS silent,
      count(*) FILTER (WHERE outcome = 'superseded') AS superseded,
      count(*) FILTER (WHERE outcome = 'local_disk') AS local_disk, count(*) FILTER (WHERE generated) AS generated,
      coalesce(sum(least(total_us, 1099511627775)) FILTER (WHERE outcome = 'ready'), 0) AS total_us_sum,
      coalesce(array_agg(total_us) FILTER (WHERE outcome = 'ready'), '{}') AS ready_us
    FROM boot, unnest(enum_range(NULL::"RollupGrain")) AS grain GROUP BY 1, 2, 3, 4
  ) AS counted LEFT JOIN (
    SELECT organization_id, site_id, grain, starts_at, jsonb_object_agg(name, sums) AS phase_sums FROM (
      SELECT organization_id, site_id, grain, date_trunc(grain::TEXT, started_at, 'UTC') AS starts_at, phase->>'name' AS name,
        jsonb_build_object('count', count(*), 'sumUs', sum(least((phase->>'durationUs')::BIGINT, 1099511627775)),
          'buckets', pg_temp.buckets_of(array_agg((phase->>'durationUs')::BIGINT))) AS sums
      FROM boot, unnest(enum_range(NULL::"RollupGrain")) AS grain, jsonb_array_elements(phases) AS phase
      WHERE outcome = 'ready' AND phase ? 'durationUs' GROUP BY 1, 2, 3, 4, 5
    ) AS by_phase GROUP BY 1, 2, 3, 4
  ) AS phases_of ON (phases_of.organization_id, phases_of.site_id, phases_of.grain, phases_of.starts_at)
    = (counted.organization_id, counted.site_id, counted.grain, counted.starts_at);

DROP TABLE "boot_unpartitioned";

-- Keys and indexes, after the rows: on the partitions, too.
ALTER TABLE "boot_key" ADD CONSTRAINT "boot_key_pkey" PRIMARY KEY ("organization_id","boot_id");
ALTER TABLE "boot_day" ADD CONSTRAINT "boot_day_pkey" PRIMARY KEY ("organization_id","received_on");
ALTER TABLE "boot" ADD CONSTRAINT "boot_pkey" PRIMARY KEY ("organization_id","id","received_on");
ALTER TABLE "boot_detail" ADD CONSTRAINT "boot_detail_pkey" PRIMARY KEY ("organization_id","boot_id","received_on");

-- CreateIndex
CREATE INDEX "boot_key_organization_id_change_idx" ON "boot_key"("organization_id", "change");

-- CreateIndex
CREATE INDEX "boot_key_received_on_idx" ON "boot_key"("received_on");

-- CreateIndex
CREATE INDEX "boot_organization_id_started_at_id_idx" ON "boot"("organization_id", "started_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "boot_organization_id_device_id_started_at_id_idx" ON "boot"("organization_id", "device_id", "started_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "boot_organization_id_site_id_started_at_id_idx" ON "boot"("organization_id", "site_id", "started_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "boot_organization_id_outcome_started_at_id_idx" ON "boot"("organization_id", "outcome", "started_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "boot_rollup_grain_starts_at_idx" ON "boot_rollup"("grain", "starts_at");

-- AddForeignKey
ALTER TABLE "boot_key" ADD CONSTRAINT "boot_key_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot_day" ADD CONSTRAINT "boot_day_organization_id_fkey" FOREIGN KEY ("organization_id") REFERENCES "organization"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot_rollup" ADD CONSTRAINT "boot_rollup_organization_id_site_id_fkey" FOREIGN KEY ("organization_id", "site_id") REFERENCES "site"("organization_id", "id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "boot_capture" ADD CONSTRAINT "boot_capture_organization_id_boot_id_fkey" FOREIGN KEY ("organization_id", "boot_id") REFERENCES "boot_key"("organization_id", "boot_id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "power_order" ADD CONSTRAINT "power_order_organization_id_taken_boot_id_fkey" FOREIGN KEY ("organization_id", "taken_boot_id") REFERENCES "boot_key"("organization_id", "boot_id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Partitioned tables have no foreign keys: a site that goes, alone or with its organization, takes its boots along.
CREATE FUNCTION forget_boots_of_site() RETURNS TRIGGER
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  WITH gone AS (
    DELETE FROM public.boot WHERE organization_id = OLD.organization_id AND site_id = OLD.id RETURNING id, received_on
  ), details AS (
    DELETE FROM public.boot_detail USING gone WHERE boot_detail.organization_id = OLD.organization_id
      AND boot_detail.boot_id = gone.id AND boot_detail.received_on = gone.received_on
  )
  DELETE FROM public.boot_key USING gone WHERE boot_key.organization_id = OLD.organization_id AND boot_key.boot_id = gone.id;
  RETURN NULL;
END $$;
CREATE TRIGGER forget_boots_of_site AFTER DELETE ON "site" FOR EACH ROW EXECUTE FUNCTION forget_boots_of_site();

-- The second wall: docs/decisions/0009-row-level-security.md. Partitions have theirs from make_boot_partition.
SELECT protect_tenant_table(name::regclass)
FROM unnest(ARRAY['boot_key', 'boot_day', 'boot', 'boot_detail', 'boot_rollup']) AS name;
GRANT EXECUTE ON FUNCTION ensure_boot_partitions(DATE, DATE), boot_partitions_of(DATE[]), drop_boot_partitions(TEXT, DATE),
  forget_dropped_boots(DATE, INTEGER), forget_hour_rollups(TIMESTAMPTZ) TO bootfarm_api;
