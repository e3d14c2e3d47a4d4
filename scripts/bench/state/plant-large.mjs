import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { inRoot } from '../../lib/paths.mjs'

export const siteCount = 10_000
export const deviceCount = 100_000
export const bootCount = 200_000
/** Others, without anything: jobs look at each organization. */
export const organizationCount = 2_000
const devicesPerSite = deviceCount / siteCount
const scheduleCount = 50
/** A device in ten never booted, and the first ones booted three times, so that there are `bootCount` boots. */
const neverBootedEvery = 10
const thriceUpTo = bootCount - 2 * (deviceCount - deviceCount / neverBootedEvery)

/**
 * Adds to an organization, by SQL: creating everything by requests is not what is measured.
 * @param {string} ownerUrl
 * @param {{ organizationId: string, farmId: string, vdiskId: string, versionId: string }} tenant
 * @returns {Promise<{ versionIds: string[] }>} the vDisk's versions in their order; the last one is the default
 */
export async function plantLarge(ownerUrl, tenant) {
  const pg = createRequire(inRoot('packages/db/package.json'))('pg')
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  const versionIds = [tenant.versionId, randomUUID(), randomUUID()]
  try {
    for (const statements of [vdisk, sites, devices, boots, rollups, schedules, organizations])
      for (const [text, values] of statements({ ...tenant, versionIds })) await client.query(text, values)
    // As autovacuum leaves it.
    await client.query('vacuum analyze')
  } finally {
    await client.end()
  }
  return { versionIds }
}

function vdisk({ organizationId, vdiskId, versionIds }) {
  return [
    [
      `insert into vdisk_version (organization_id, id, vdisk_id, number, size_bytes, disk_path, kernel_path, initrd_path, command_line)
      select organization_id, added.id::uuid, vdisk_id, added.place, size_bytes, disk_path, kernel_path, initrd_path, command_line
      from vdisk_version as version, unnest($2::text[]) with ordinality as added (id, place)
      where version.organization_id = $1 and version.id = $3 and added.place > 1`,
      [organizationId, versionIds, versionIds[0]],
    ],
    [
      `update vdisk_version set state = 'released', released_at = now() - make_interval(days => 90 - number)
      where organization_id = $1 and vdisk_id = $2`,
      [organizationId, vdiskId],
    ],
    [
      'update vdisk set default_version_id = $3, last_version_number = 3 where organization_id = $1 and id = $2',
      [organizationId, vdiskId, versionIds[2]],
    ],
  ]
}

function sites({ organizationId, farmId, vdiskId, versionIds }) {
  return [
    [
      `create temp table planted as select number, gen_random_uuid() as site_id, gen_random_uuid() as collection_id,
        gen_random_uuid() as edge_id from generate_series(1, ${siteCount}) as number`,
      [],
    ],
    [
      `insert into site (organization_id, id, farm_id, name, time_zone)
      select $1, site_id, $2, 'Site ' || number, 'UTC' from planted`,
      [organizationId, farmId],
    ],
    [
      `insert into collection (organization_id, id, site_id, name, vdisk_id)
      select $1, collection_id, site_id, 'Room ' || number, $2 from planted`,
      [organizationId, vdiskId],
    ],
    [
      `insert into edge (organization_id, id, site_id, name, public_key, arch, agent_version, enrolled_at, heartbeat_at, heartbeat)
      select $1, edge_id, site_id, 'edge-' || number, 'planted ' || number, 'x86_64', '0.1.0', now(), now() + interval '1 day',
        jsonb_build_object('agentVersion', '0.1.0', 'arch', 'x86_64', 'uptimeMs', 1, 'address', '192.0.2.1') from planted`,
      [organizationId],
    ],
    [
      `insert into edge_version (organization_id, edge_id, version_id, state, own_bytes, shared_bytes, reclaimable_bytes, reported_at, scan)
      select $1, edge_id, version_id, 'present', 1000000, 1000000, 1000000, now(), 1
      from planted, unnest($2::uuid[]) as version_id`,
      [organizationId, versionIds],
    ],
  ]
}

function devices({ organizationId }) {
  return [
    [
      `insert into device (organization_id, id, site_id, collection_id, name, mac, device_type, created_at)
      select $1, gen_random_uuid(), site_id, collection_id, 'pc-' || place,
        regexp_replace('02' || lpad(to_hex(place), 10, '0'), '(..)(?!$)', '\\1:', 'g'),
        (case when place % 100 = 5 then 'test' else 'production' end)::"DeviceType",
        now() - make_interval(secs => (place::bigint * 7919 % 31536000)::integer)
      from planted, generate_series(0, ${devicesPerSite - 1}) as seat,
        lateral (select (number - 1) * ${devicesPerSite} + seat as place) as placed`,
      [organizationId],
    ],
  ]
}

function boots({ organizationId, vdiskId, versionIds }) {
  return [
    [`select ensure_boot_partitions((now() - interval '30 days')::date, now()::date)`, []],
    [
      `create temp table planted_boot as
      select gen_random_uuid() as id, device.id as device_id, device.site_id, planted.edge_id, device.mac, turn,
        date_trunc('milliseconds', now() - make_interval(secs => case when turn = 1 then 1728000 else 0 end
          + (place * 7919 + turn * 104729) % (case when turn = 1 then 864000 else 1728000 end))) as started_at,
        (place + turn * 37) % 100 as chance, 20000000 + (place * 7919 % 40000000) as total_us
      from (select device.*, row_number() over (order by name) as place from device where organization_id = $1) as device
        join planted using (site_id), generate_series(1, 3) as turn
      where place % ${neverBootedEvery} <> 0 and (turn < 3 or (place - place / ${neverBootedEvery}) <= ${thriceUpTo})`,
      [organizationId],
    ],
    [
      `insert into boot_key (organization_id, boot_id, received_on, change)
      select $1, id, (started_at at time zone 'UTC')::date, row_number() over (order by started_at) from planted_boot`,
      [organizationId],
    ],
    [
      `insert into boot_day (organization_id, received_on, earliest_started_at)
      select $1, (started_at at time zone 'UTC')::date, min(started_at) from planted_boot group by 2`,
      [organizationId],
    ],
    [
      `insert into boot (organization_id, id, received_on, edge_id, site_id, device_id, mac, revision, started_at, received_at, updated_at,
        outcome, last_phase, total_us, bytes_out, retries, simulated, generated, vdisk_id, version_id, phases)
      select $1, id, (started_at at time zone 'UTC')::date, edge_id, site_id, device_id, mac, 2, started_at, started_at, started_at,
        (case when chance < 95 then 'ready' when chance < 99 then 'failed' else 'silent' end)::"BootOutcome", 'stage2', total_us,
        100000000, 3, false, false, $2, case when chance % 5 < 3 then $3::uuid else $4::uuid end,
        jsonb_build_array(jsonb_build_object('name', 'dhcp', 'startUs', 0, 'durationUs', 1000000),
          jsonb_build_object('name', 'stage2', 'startUs', 1000000, 'durationUs', total_us - 1000000))
      from planted_boot`,
      [organizationId, vdiskId, versionIds[2], versionIds[1]],
    ],
    [
      `update device set last_boot_id = newest.id, runs_boot_id = newest.id, runs_vdisk_id = $2,
        runs_version_id = case when chance % 5 < 3 then $3::uuid else $4::uuid end, last_boot_started_at = newest.started_at, last_boot_total_us = newest.total_us,
        last_boot_outcome = (case when chance < 95 then 'ready' when chance < 99 then 'failed' else 'silent' end)::"BootOutcome"
      from (select distinct on (device_id) * from planted_boot order by device_id, started_at desc) as newest
      where device.organization_id = $1 and device.id = newest.device_id`,
      [organizationId, vdiskId, versionIds[2], versionIds[1]],
    ],
    [`update boot_feed set last_change = ${bootCount} where organization_id = $1`, [organizationId]],
  ]
}

/** As rules/boot-rollup.ts counts them. */
function rollups({ organizationId }) {
  return [
    [
      `insert into boot_rollup (organization_id, site_id, grain, starts_at, ready_count, failed_count, silent_count, total_us_sum,
        total_us_buckets, phases)
      select $1, site_id, grain, starts_at, sum(ready), sum(failed), sum(silent), sum(total_us_sum),
        coalesce(jsonb_object_agg(bucket, ready) filter (where ready > 0), '{}'),
        jsonb_build_object('stage2', jsonb_build_object('count', sum(ready), 'sumUs', sum(total_us_sum),
          'buckets', coalesce(jsonb_object_agg(bucket, ready) filter (where ready > 0), '{}')))
      from (
        select site_id, grain, date_trunc(grain::text, started_at, 'UTC') as starts_at,
          (floor(log(2, total_us)) - 5)::integer * 32 + (total_us >> (floor(log(2, total_us)) - 5)::integer) as bucket,
          count(*) filter (where chance < 95) as ready, count(*) filter (where chance between 95 and 98) as failed,
          count(*) filter (where chance = 99) as silent, coalesce(sum(total_us) filter (where chance < 95), 0) as total_us_sum
        from planted_boot, unnest(enum_range(null::"RollupGrain")) as grain group by 1, 2, 3, 4
      ) as counted group by site_id, grain, starts_at`,
      [organizationId],
    ],
  ]
}

/** One in five of all sites, by a tag, the others each of one site's collection; none is due. */
function schedules({ organizationId, farmId }) {
  return [
    [
      `create temp table planted_schedule as select planted.*, gen_random_uuid() as schedule_id, number % 5 = 0 as is_of_farm
      from planted where number <= ${scheduleCount}`,
      [],
    ],
    [
      `insert into schedule (organization_id, id, farm_id, site_id, name, rate_per_minute, kind, cron, time_zone, instants, renew_at,
        prepared_until, created_at, updated_at)
      select $1, schedule_id, $2, case when is_of_farm then null else site_id end, 'Schedule ' || number, 60, 'cron', '0 6 * * *', 'UTC',
        array(select date_trunc('day', now()) + make_interval(days => day, hours => 6) from generate_series(1, 37) as day),
        now() + interval '7 days', now(), now(), now() from planted_schedule`,
      [organizationId, farmId],
    ],
    [
      `insert into schedule_target (organization_id, schedule_id, position, kind, collection_id, tag)
      select $1, schedule_id, 0, (case when is_of_farm then 'tag' else 'collection' end)::"ScheduleTargetKind",
        case when is_of_farm then null else collection_id end, case when is_of_farm then 'early' end from planted_schedule`,
      [organizationId],
    ],
  ]
}

function organizations() {
  return [
    [
      `with added as (
        insert into organization (id, slug, name) select gen_random_uuid(), 'other-' || number, 'Other ' || number
        from generate_series(1, ${organizationCount}) as number returning id
      ) insert into boot_feed (organization_id) select id from added`,
      [],
    ],
  ]
}
