import { createHash } from 'node:crypto'
import { publicKeyOf } from '@bootfarm/proto/uplink-signature'
import pg from 'pg'

/**
 * Fills an empty database with organizations, sites, devices and boots of the last days, for measurements. All of it is made up
 * by the database itself, in some statements; ids, keys and sessions follow from numbers, so that a load knows them.
 */

export interface SeedSize {
  organizations: number
  sites: number
  devices: number
  boots: number
  /** Boots are spread over so many days up to today. */
  days: number
  /** Of the newest of these days boots have details, too. */
  detailDays: number
}

export const seedDefaults: SeedSize = {
  organizations: 100,
  sites: 1_000,
  devices: 100_000,
  boots: 1_000_000,
  days: 30,
  detailDays: 3,
}

/** The id of the n-th row of a kind, n from 1: as `seed_id` in the database. */
export function seedId(kind: string, number: number): string {
  const hex = createHash('md5').update(`${kind} ${number}`).digest('hex')
  const digits = `${hex.slice(0, 12)}4${hex.slice(13, 16)}8${hex.slice(17)}`
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

/** The private seed of the n-th site's edge. Anybody can compute it: never seed a database that others reach. */
export function seedEdgeKey(number: number): Uint8Array {
  return createHash('sha256').update(`seeded edge ${number}`).digest()
}

/** Of the owner of the n-th organization, unsigned. */
export function seedSessionToken(number: number): string {
  return `seeded-session-${number}`
}

const functions = `
  create function pg_temp.seed_id(kind text, number bigint) returns uuid language sql immutable parallel safe as $$
    select overlay(overlay(md5(kind || ' ' || number) placing '4' from 13) placing '8' from 17)::uuid $$;
  create function pg_temp.bucket_of(us bigint) returns bigint language sql immutable parallel safe as $$
    select doublings * 32 + (us >> doublings::integer)
    from (select greatest(0, length(ltrim(us::bit(64)::text, '0')) - 6) as doublings) as scaled $$;`

/** Every statement takes what it needs of the sizes and of `keys` as settings, so that all of them look alike. */
function statements({ organizations, sites, devices, boots, days, detailDays }: SeedSize): [string, string][] {
  const organizationOf = (site: string) => `((${site} - 1) * ${organizations} / ${sites} + 1)`
  const siteOf = (device: string) => `((${device} - 1) * ${sites} / ${devices} + 1)`
  const deviceOf = (boot: string) => `((${boot} * 7919) % ${devices} + 1)`
  const series = (count: number) => `generate_series(1, ${count}::bigint) as n`
  return [
    [
      'organizations and people',
      `insert into organization (id, slug, name) select pg_temp.seed_id('organization', n), 'seeded-' || n, 'Organization ' || n from ${series(organizations)};
      insert into boot_feed (organization_id, last_change) select pg_temp.seed_id('organization', n), ${boots} from ${series(organizations)};
      insert into "user" (id, name, email, email_verified, updated_at)
        select pg_temp.seed_id('user', n), 'Owner ' || n, 'owner-' || n || '@example.test', true, now() from ${series(organizations)};
      insert into session (id, token, user_id, expires_at, updated_at)
        select pg_temp.seed_id('session', n), 'seeded-session-' || n, pg_temp.seed_id('user', n), now() + interval '7 days', now()
        from ${series(organizations)};
      insert into membership (organization_id, user_id)
        select pg_temp.seed_id('organization', n), pg_temp.seed_id('user', n) from ${series(organizations)};
      insert into role_grant (organization_id, id, user_id, role)
        select pg_temp.seed_id('organization', n), pg_temp.seed_id('grant', n), pg_temp.seed_id('user', n), 'owner' from ${series(organizations)};`,
    ],
    [
      'farms, sites, edges and devices',
      `insert into farm (organization_id, id, name)
        select pg_temp.seed_id('organization', n), pg_temp.seed_id('farm', n), 'Farm' from ${series(organizations)};
      insert into vdisk (organization_id, id, farm_id, name)
        select pg_temp.seed_id('organization', n), pg_temp.seed_id('vdisk', n), pg_temp.seed_id('farm', n), 'Debian' from ${series(organizations)};
      insert into vdisk_version (organization_id, id, vdisk_id, number, size_bytes, disk_path, command_line)
        select pg_temp.seed_id('organization', n), pg_temp.seed_id('version', n), pg_temp.seed_id('vdisk', n), 1, 4294967296, 'd/1/disk.raw', 'quiet'
        from ${series(organizations)};
      insert into site (organization_id, id, farm_id, name, time_zone)
        select pg_temp.seed_id('organization', o), pg_temp.seed_id('site', n), pg_temp.seed_id('farm', o), 'Site ' || n, 'Europe/Berlin'
        from ${series(sites)}, lateral (select ${organizationOf('n')} as o) as owner;
      insert into edge (organization_id, id, site_id, name, public_key, arch, agent_version, enrolled_at, subnets)
        select pg_temp.seed_id('organization', o), pg_temp.seed_id('edge', n), pg_temp.seed_id('site', n), 'edge-' || n, keys[n], 'x86_64', '0.1.0',
          now() - interval '60 days', '{}'
        from (select string_to_array(current_setting('seed.keys'), ',') as keys) as given, ${series(sites)},
          lateral (select ${organizationOf('n')} as o) as owner;
      insert into collection (organization_id, id, site_id, name, vdisk_id)
        select pg_temp.seed_id('organization', o), pg_temp.seed_id('collection', n), pg_temp.seed_id('site', n), 'Lab', pg_temp.seed_id('vdisk', o)
        from ${series(sites)}, lateral (select ${organizationOf('n')} as o) as owner;
      insert into device (organization_id, id, site_id, collection_id, name, mac)
        select pg_temp.seed_id('organization', ${organizationOf('s')}), pg_temp.seed_id('device', n), pg_temp.seed_id('site', s),
          pg_temp.seed_id('collection', s), 'pc-' || lpad(n::text, 6, '0'),
          '02:bf' || regexp_replace(lpad(to_hex(n), 8, '0'), '(..)', ':\\1', 'g')
        from ${series(devices)}, lateral (select ${siteOf('n')} as s) as place;`,
    ],
    [
      'boots',
      `select ensure_boot_partitions(current_date - ${days - 1}, current_date + 1);
      create temporary table seeded as
        select n, pg_temp.seed_id('organization', ${organizationOf('s')}) as organization_id, pg_temp.seed_id('boot', n) as id,
          pg_temp.seed_id('edge', s) as edge_id, pg_temp.seed_id('site', s) as site_id, pg_temp.seed_id('device', d) as device_id,
          '02:bf' || regexp_replace(lpad(to_hex(d), 8, '0'), '(..)', ':\\1', 'g') as mac,
          date_trunc('milliseconds', now()) - (${boots} - n) * (${days - 1} * interval '1 day' / ${boots}) as started_at,
          (10000000 + (n * 48271) % 30000000)::bigint as total_us,
          (case when n % 50 = 0 then 'failed' when n % 97 = 0 then 'silent' else 'ready' end)::"BootOutcome" as outcome,
          pg_temp.seed_id('vdisk', ${organizationOf('s')}) as vdisk_id, pg_temp.seed_id('version', ${organizationOf('s')}) as version_id
        from ${series(boots)}, lateral (select ${deviceOf('n')} as d) as which, lateral (select ${siteOf('d')} as s) as place;
      insert into boot_key (organization_id, boot_id, received_on, change)
        select organization_id, id, (started_at at time zone 'UTC')::date, n from seeded order by n;
      insert into boot_day (organization_id, received_on, earliest_started_at)
        select organization_id, (started_at at time zone 'UTC')::date, min(started_at) from seeded group by 1, 2;
      insert into boot (organization_id, id, received_on, edge_id, site_id, device_id, mac, revision, started_at, received_at, updated_at,
          outcome, failed_phase, failed_cause, last_phase, total_us, bytes_out, retries, simulated, generated, vdisk_id, version_id, phases)
        select organization_id, id, (started_at at time zone 'UTC')::date, edge_id, site_id, device_id, mac, 9, started_at, started_at, started_at,
          outcome, case when outcome <> 'ready' then 'loader' end, case when outcome = 'failed' then 'nbp_not_found' end,
          case when outcome = 'ready' then 'ready' else 'loader' end, total_us, 180000000, 3, false, false, vdisk_id, version_id, jsonb_build_array(
            jsonb_build_object('name', 'dhcp', 'startUs', 0, 'durationUs', total_us / 10),
            jsonb_build_object('name', 'nbp', 'startUs', total_us / 10, 'durationUs', total_us / 10),
            jsonb_build_object('name', 'loader', 'startUs', total_us / 5, 'durationUs', total_us / 5),
            jsonb_build_object('name', 'stage2', 'startUs', total_us * 2 / 5, 'durationUs', total_us * 3 / 5))
        from seeded order by n;`,
    ],
    [
      'details',
      `insert into boot_detail (organization_id, boot_id, received_on, phases, facts)
        select organization_id, id, received_on, (select jsonb_agg(phase || '{"source":"observed","bytesIn":1200,"bytesOut":45000000,"packetsIn":20,
            "packetsOut":31000,"retries":1,"missingFragments":2,"reads":512}'::jsonb) from jsonb_array_elements(phases) as phase),
          '{"clientArch":7,"vendorClass":"PXEClient:Arch:00007:UNDI:003016","ip":"10.1.2.3","mtu":1500,"reconnects":0}'
        from boot where received_on > current_date - ${detailDays};`,
    ],
    [
      'rollups and last boots',
      `insert into boot_rollup (organization_id, site_id, grain, starts_at, ready_count, failed_count, silent_count, total_us_sum, total_us_buckets)
        select organization_id, site_id, grain, starts_at, sum(many) filter (where outcome = 'ready'),
          coalesce(sum(many) filter (where outcome = 'failed'), 0), coalesce(sum(many) filter (where outcome = 'silent'), 0),
          sum(us) filter (where outcome = 'ready'), jsonb_object_agg(bucket, many) filter (where outcome = 'ready')
        from (
          select organization_id, site_id, grain, date_trunc(grain::text, started_at, 'UTC') as starts_at, outcome,
            pg_temp.bucket_of(total_us) as bucket, count(*) as many, sum(total_us) as us
          from boot, unnest(enum_range(null::"RollupGrain")) as grain group by 1, 2, 3, 4, 5, 6
        ) as counted group by 1, 2, 3, 4 having count(*) filter (where outcome = 'ready') > 0;
      update device set last_boot_id = newest.id, last_boot_started_at = newest.started_at, last_boot_outcome = newest.outcome,
          last_boot_total_us = newest.total_us
        from (select distinct on (device_id) * from seeded order by device_id, n desc) as newest
        where device.organization_id = newest.organization_id and device.id = newest.device_id;`,
    ],
  ]
}

/** Whether `seed` has filled this database, or was about to. */
export async function isSeeded(ownerUrl: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  try {
    const { rowCount } = await client.query('select 1 from organization where id = $1', [seedId('organization', 1)])
    return rowCount !== 0
  } finally {
    await client.end()
  }
}

/** @param ownerUrl of a migrated database without organizations; throws where it has any */
export async function seed(
  ownerUrl: string,
  size: SeedSize,
  onStep: (what: string, tookMs: number) => void = () => undefined,
): Promise<void> {
  const client = new pg.Client({ connectionString: ownerUrl })
  await client.connect()
  try {
    const { rowCount } = await client.query('select 1 from organization limit 1')
    if (rowCount) throw new Error('This database has organizations already; seed an empty one.')
    const keys = Array.from({ length: size.sites }, (_, index) => publicKeyOf(seedEdgeKey(index + 1)))
    await client.query(`set synchronous_commit = off; set work_mem = '256MB'; set time zone 'UTC'; ${functions}`)
    await client.query(`select set_config('seed.keys', $1, false)`, [keys.join(',')])
    for (const [what, sql] of statements(size)) {
      const before = performance.now()
      await client.query(sql)
      onStep(what, performance.now() - before)
    }
    const before = performance.now()
    await client.query('vacuum analyze')
    onStep('vacuum and statistics', performance.now() - before)
  } finally {
    await client.end()
  }
}
