-- Wakes the edges of a site in the transaction that changes its desired state: uplink/state in the API reads the state, and a
-- test finds each column that it reads and has no trigger here. Equal notifications of a transaction are sent once, when it commits.

-- The sites that show a boot menu.
CREATE FUNCTION sites_with_menu(of_organization uuid, of_menu uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE AS $$
  SELECT c.site_id FROM public.collection c WHERE c.organization_id = of_organization AND c.boot_menu_id = of_menu
  UNION SELECT d.site_id FROM public.device d WHERE d.organization_id = of_organization AND d.boot_menu_id = of_menu
$$;

-- The sites that boot a vDisk: by a collection, a device or a menu.
CREATE FUNCTION sites_with_vdisk(of_organization uuid, of_vdisk uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE AS $$
  SELECT c.site_id FROM public.collection c WHERE c.organization_id = of_organization AND c.vdisk_id = of_vdisk
  UNION SELECT d.site_id FROM public.device d WHERE d.organization_id = of_organization AND d.vdisk_id = of_vdisk
  UNION SELECT site_id FROM public.boot_menu_entry e, public.sites_with_menu(e.organization_id, e.menu_id) AS site_id
    WHERE e.organization_id = of_organization AND e.vdisk_id = of_vdisk
$$;

-- The sites whose devices have an edge as their home: one that was moved keeps it.
CREATE FUNCTION sites_with_home(of_organization uuid, of_edge uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE AS $$
  SELECT DISTINCT d.site_id FROM public.device d
  WHERE d.organization_id = of_organization AND of_edge IN (d.home_edge_id, d.next_home_edge_id)
$$;

-- The sites of a schedule: its own, or all of its farm.
CREATE FUNCTION sites_with_schedule(of_organization uuid, of_farm uuid, of_site uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE AS $$
  SELECT of_site WHERE of_site IS NOT NULL
  UNION ALL SELECT s.id FROM public.site s
    WHERE of_site IS NULL AND s.organization_id = of_organization AND s.farm_id = of_farm
$$;

-- Gives a table its triggers. Calling it again replaces them.
-- content: what desired states say of the table's rows, primary key included; %1$s stands for the table.
-- sites: from `changed`, the rows of `content` that differ, to the ids of sites whose state has changed.
CREATE FUNCTION wake_edges_on(target regclass, content text, sites text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $make$
DECLARE
  name text := (SELECT relname FROM pg_class WHERE oid = target);
  wake text := format('PERFORM pg_notify(''bootfarm'', ''state:'' || site_id)
    FROM (WITH changed AS (%%s) SELECT DISTINCT site_id FROM (%s) AS affected (site_id)) AS woken', sites);
  before text := format(content, 'old_rows');
  after text := format(content, 'new_rows');
BEGIN
  EXECUTE format($function$
CREATE OR REPLACE FUNCTION public.%1$I() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN
    %2$s;
  ELSIF TG_OP = 'DELETE' THEN
    %3$s;
  ELSE
    %4$s;
  END IF;
  RETURN NULL;
END
$$$function$,
    'wake_edges_of_' || name, format(wake, after), format(wake, before),
    format(wake, format('(%1$s EXCEPT %2$s) UNION ALL (%2$s EXCEPT %1$s)', before, after)));
  EXECUTE format('CREATE OR REPLACE TRIGGER wake_edges_inserted AFTER INSERT ON %s
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.%I()', target, 'wake_edges_of_' || name);
  EXECUTE format('CREATE OR REPLACE TRIGGER wake_edges_updated AFTER UPDATE ON %s
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION public.%I()',
    target, 'wake_edges_of_' || name);
  EXECUTE format('CREATE OR REPLACE TRIGGER wake_edges_deleted AFTER DELETE ON %s
    REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION public.%I()', target, 'wake_edges_of_' || name);
END
$make$;

SELECT wake_edges_on('organization', $$SELECT id, state_incarnation FROM %s$$,
  $$SELECT s.id FROM changed JOIN public.site s ON s.organization_id = changed.id$$);

SELECT wake_edges_on('signing_key', $$SELECT organization_id, id, public_key, seed, previous_key, statement FROM %s$$,
  $$SELECT s.id FROM changed JOIN public.site s USING (organization_id)$$);

SELECT wake_edges_on('site',
  $$SELECT id, farm_id, name, unknown_devices, boot_program_set, capture, edge_key, deletion_id FROM %s$$,
  $$SELECT id FROM changed$$);

-- Of a heartbeat, only where the other edges reach it. Its name is also told where devices have it as their home.
SELECT wake_edges_on('edge',
  $$SELECT organization_id, id, site_id, name, public_key, enrolled_at, revoked_at, weight, subnets, draining, rotate_key_from,
    heartbeat->>'address' AS address, heartbeat->>'peerPort' AS peer_port, heartbeat->>'streamPort' AS stream_port FROM %s$$,
  $$SELECT site_id FROM changed
    UNION SELECT public.sites_with_home(organization_id, id) FROM changed GROUP BY organization_id, id
      HAVING count(*) = 1 OR count(DISTINCT name) > 1$$);

SELECT wake_edges_on('collection', $$SELECT id, site_id, vdisk_id, boot_program_set, boot_menu_id, deletion_id FROM %s$$,
  $$SELECT site_id FROM changed$$);

-- Not where it last booted, nor how.
SELECT wake_edges_on('device',
  $$SELECT id, site_id, collection_id, name, mac, enabled, boot_program_set, boot_menu_choice, boot_menu_id, tags, vdisk_id,
    device_type, home_edge_id, next_home_edge_id, deletion_id FROM %s$$,
  $$SELECT site_id FROM changed$$);

SELECT wake_edges_on('discovered_device', $$SELECT id, site_id, mac FROM %s WHERE ignored_at IS NOT NULL$$,
  $$SELECT site_id FROM changed$$);

SELECT wake_edges_on('power_on', $$SELECT organization_id, id, device_id, requested_at, expires_at FROM %s$$,
  $$SELECT d.site_id FROM changed JOIN public.device d ON d.organization_id = changed.organization_id AND d.id = device_id$$);

SELECT wake_edges_on('power_order',
  $$SELECT organization_id, id, device_id, "order", requested_at, expires_at FROM %s WHERE taken_at IS NULL$$,
  $$SELECT d.site_id FROM changed JOIN public.device d ON d.organization_id = changed.organization_id AND d.id = device_id$$);

SELECT wake_edges_on('schedule',
  $$SELECT organization_id, id, farm_id, site_id, action, power, rate_per_minute, instants, created_at FROM %s
    WHERE instants <> '{}'$$,
  $$SELECT public.sites_with_schedule(organization_id, farm_id, site_id) FROM changed$$);

SELECT wake_edges_on('schedule_target',
  $$SELECT organization_id, schedule_id, position, device_id, collection_id, tag FROM %s$$,
  $$SELECT public.sites_with_schedule(s.organization_id, s.farm_id, s.site_id) FROM changed
      JOIN public.schedule s ON s.organization_id = changed.organization_id AND s.id = schedule_id WHERE s.instants <> '{}'$$);

SELECT wake_edges_on('store_job',
  $$SELECT organization_id, id, edge_id, kind, vdisk_id, version_id, into_version_id, source_path, boot_files, device_id,
    layer_class, asked_at FROM %s WHERE state IN ('queued', 'running')$$,
  $$SELECT e.site_id FROM changed JOIN public.edge e ON e.organization_id = changed.organization_id AND e.id = edge_id$$);

SELECT wake_edges_on('vdisk',
  $$SELECT organization_id, id, name, created_at, default_version_id, override_version_id, pending_version_id,
    maintenance_device_id, write_cache, write_cache_limit_bytes, write_cache_full, deletion_id FROM %s$$,
  $$SELECT public.sites_with_vdisk(organization_id, id) FROM changed$$);

-- Store jobs that make a version say how it boots.
SELECT wake_edges_on('vdisk_version',
  $$SELECT organization_id, id, vdisk_id, number, size_bytes, disk_path, kernel_path, initrd_path, command_line, state, released_at,
    parent_version_id, sealed_at, seal_asked_at, manifest_root, manifest_counter, deletion_id FROM %s$$,
  $$SELECT public.sites_with_vdisk(organization_id, vdisk_id) FROM changed
    UNION SELECT e.site_id FROM changed JOIN public.store_job j
        ON j.organization_id = changed.organization_id AND j.state IN ('queued', 'running')
          AND changed.id IN (j.version_id, j.into_version_id)
      JOIN public.edge e ON e.organization_id = j.organization_id AND e.id = j.edge_id$$);

SELECT wake_edges_on('boot_menu',
  $$SELECT organization_id, id, timeout_ms, default_position, created_at, deletion_id FROM %s$$,
  $$SELECT public.sites_with_menu(organization_id, id) FROM changed$$);

SELECT wake_edges_on('boot_menu_entry',
  $$SELECT organization_id, menu_id, position, title, vdisk_id, version_id FROM %s$$,
  $$SELECT public.sites_with_menu(organization_id, menu_id) FROM changed$$);
