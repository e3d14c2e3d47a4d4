-- How much edges work, by minute for days and by quarter of an hour for months: docs/decisions/0098-load-of-edges.md.
CREATE TABLE edge_load (
  organization_id UUID,
  edge_id UUID,
  -- How long the row's time is: 1 or 15.
  step_minutes SMALLINT,
  -- Its begin.
  at TIMESTAMPTZ(3),
  -- How long the counters are known for: the time between heartbeats of one start of the edge.
  covered_ms BIGINT NOT NULL,
  -- Sums of devices times milliseconds.
  streams_ms BIGINT NOT NULL,
  booting_ms BIGINT NOT NULL,
  stream_bytes BIGINT NOT NULL,
  file_bytes BIGINT NOT NULL,
  reads BIGINT NOT NULL,
  cold_reads BIGINT NOT NULL,
  cold_us BIGINT NOT NULL,
  -- Of all processors together; 0 where the edge did not tell.
  processor_ms BIGINT NOT NULL,
  busy_ms BIGINT NOT NULL,
  -- The highest between two heartbeats, and how many devices the edge served then.
  devices_peak BIGINT NOT NULL,
  sent_peak BIGINT NOT NULL,
  sent_peak_devices BIGINT NOT NULL,
  busy_peak DOUBLE PRECISION NOT NULL,
  busy_peak_devices BIGINT NOT NULL,
  -- As last told; null: not told.
  link_mbps BIGINT,
  memory_total_bytes BIGINT,
  memory_available_bytes BIGINT,
  file_cache_bytes BIGINT,
  store_total_bytes BIGINT,
  store_free_bytes BIGINT,
  PRIMARY KEY (organization_id, edge_id, step_minutes, at),
  FOREIGN KEY (organization_id, edge_id) REFERENCES edge ON UPDATE CASCADE ON DELETE CASCADE
) WITH (fillfactor = 70);
-- For those that are dropped.
CREATE INDEX ON edge_load (organization_id, step_minutes, at);
SELECT protect_tenant_table('edge_load');

-- How much a counter has grown, but not more than anything can: an edge may say what it likes. Negative: it began again.
-- One that only one of the two heartbeats has is of another release: it has not grown.
CREATE FUNCTION counter_growth(earlier jsonb, later jsonb, name text, most bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN earlier ? name AND later ? name
    THEN least((later->>name)::bigint - (earlier->>name)::bigint, most) ELSE 0 END
$$;

-- Adds to a heartbeat's minute and quarter of an hour what has happened since the heartbeat before it.
CREATE FUNCTION keep_edge_load() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  -- An edge that was silent for longer leaves a gap.
  silence_max_ms CONSTANT bigint := 300000;
  devices_max CONSTANT bigint := 1000000;
  load jsonb := NEW.heartbeat->'load';
  machine jsonb := NEW.heartbeat->'machine';
  former jsonb := CASE WHEN OLD.heartbeat_epoch = NEW.heartbeat_epoch THEN OLD.heartbeat->'load' END;
  ms bigint := coalesce(floor(extract(epoch FROM NEW.heartbeat_at - OLD.heartbeat_at) * 1000), 0);
  streams bigint := least(coalesce((load->>'streams')::bigint, 0), devices_max);
  booting bigint := least(coalesce((NEW.heartbeat->>'devicesBooting')::bigint, 0), devices_max);
  devices bigint := 0;
  grown record;
BEGIN
  IF load IS NULL OR former IS NULL OR ms NOT BETWEEN 1 AND silence_max_ms THEN
    ms := 0;
  ELSE
    -- A terabit a second, 65,536 reads that wait at once, 4,096 processors.
    SELECT
      public.counter_growth(former, load, 'streamBytes', ms * 125000000) AS stream_bytes,
      public.counter_growth(former, load, 'tftpBytes', ms * 125000000)
        + public.counter_growth(former, load, 'httpBytes', ms * 125000000) AS file_bytes,
      public.counter_growth(former, load, 'reads', ms * 100000) AS reads,
      public.counter_growth(former, load, 'coldReads', ms * 100000) AS cold_reads,
      public.counter_growth(former, load, 'coldReadUs', ms * 65536000) AS cold_us,
      public.counter_growth(former, load, 'processorMs', ms * 4096) AS processor_ms,
      public.counter_growth(former, load, 'processorBusyMs', ms * 4096) AS busy_ms
    INTO grown;
    -- A counter of the edge's own that began at 0 again takes its interval with it; those of the system may step back.
    IF least(grown.stream_bytes, grown.file_bytes, grown.reads, grown.cold_reads, grown.cold_us) < 0 THEN
      ms := 0;
    END IF;
  END IF;
  IF ms = 0 THEN
    IF machine IS NULL THEN
      RETURN NULL;
    END IF;
    -- Of the same types: the statement below is planned once.
    SELECT 0::bigint AS stream_bytes, 0::bigint AS file_bytes, 0::bigint AS reads, 0::bigint AS cold_reads,
      0::bigint AS cold_us, 0::bigint AS processor_ms, 0::bigint AS busy_ms INTO grown;
  ELSE
    devices := greatest(streams, booting);
    grown.processor_ms := greatest(grown.processor_ms, 0);
    grown.busy_ms := least(greatest(grown.busy_ms, 0), grown.processor_ms);
  END IF;
  INSERT INTO public.edge_load AS kept
  SELECT NEW.organization_id, NEW.id, step,
    date_bin(make_interval(mins => step), NEW.heartbeat_at, TIMESTAMPTZ '2000-01-01 00:00:00+00'),
    ms, streams * ms, booting * ms, grown.stream_bytes, grown.file_bytes,
    grown.reads, least(grown.cold_reads, grown.reads), grown.cold_us, grown.processor_ms, grown.busy_ms, devices,
    CASE WHEN ms = 0 THEN 0 ELSE (grown.stream_bytes + grown.file_bytes) * 1000 / greatest(ms, 1000) END, devices,
    CASE WHEN grown.processor_ms = 0 THEN 0 ELSE grown.busy_ms::float8 / grown.processor_ms END, devices,
    (load->>'linkMbps')::bigint, (machine->>'memoryTotalBytes')::bigint, (machine->>'memoryAvailableBytes')::bigint,
    (machine->>'fileCacheBytes')::bigint, (machine->>'storeTotalBytes')::bigint, (machine->>'storeFreeBytes')::bigint
  FROM unnest(ARRAY[1, 15]) AS step
  ON CONFLICT (organization_id, edge_id, step_minutes, at) DO UPDATE SET
    covered_ms = kept.covered_ms + excluded.covered_ms,
    streams_ms = kept.streams_ms + excluded.streams_ms,
    booting_ms = kept.booting_ms + excluded.booting_ms,
    stream_bytes = kept.stream_bytes + excluded.stream_bytes,
    file_bytes = kept.file_bytes + excluded.file_bytes,
    reads = kept.reads + excluded.reads,
    cold_reads = kept.cold_reads + excluded.cold_reads,
    cold_us = kept.cold_us + excluded.cold_us,
    processor_ms = kept.processor_ms + excluded.processor_ms,
    busy_ms = kept.busy_ms + excluded.busy_ms,
    devices_peak = greatest(kept.devices_peak, excluded.devices_peak),
    sent_peak = greatest(kept.sent_peak, excluded.sent_peak),
    sent_peak_devices = CASE WHEN excluded.sent_peak > kept.sent_peak
      THEN excluded.sent_peak_devices ELSE kept.sent_peak_devices END,
    busy_peak = greatest(kept.busy_peak, excluded.busy_peak),
    busy_peak_devices = CASE WHEN excluded.busy_peak > kept.busy_peak
      THEN excluded.busy_peak_devices ELSE kept.busy_peak_devices END,
    link_mbps = coalesce(excluded.link_mbps, kept.link_mbps),
    memory_total_bytes = coalesce(excluded.memory_total_bytes, kept.memory_total_bytes),
    memory_available_bytes = coalesce(excluded.memory_available_bytes, kept.memory_available_bytes),
    file_cache_bytes = coalesce(excluded.file_cache_bytes, kept.file_cache_bytes),
    store_total_bytes = coalesce(excluded.store_total_bytes, kept.store_total_bytes),
    store_free_bytes = coalesce(excluded.store_free_bytes, kept.store_free_bytes);
  RETURN NULL;
END
$$;

CREATE TRIGGER keep_load AFTER UPDATE OF heartbeat ON edge
  FOR EACH ROW WHEN (NEW.heartbeat_at IS DISTINCT FROM OLD.heartbeat_at) EXECUTE FUNCTION keep_edge_load();
