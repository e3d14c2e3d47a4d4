import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { migrate, migrationsFolder } from '../src/migrate.ts'
import { createEmptyDatabase } from './test-database.ts'

const organization = '00000000-0000-4000-8000-000000000001'
const id = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
const partitioned = '20261121140000_boot_partitions'

/** An organization with a device that booted three times, as the release before partitions kept it. */
const rows = `
  insert into organization (id, slug, name) values ('${organization}', 'before', 'Before');
  insert into farm (organization_id, id, name) values ('${organization}', '${id(2)}', 'Farm');
  insert into site (organization_id, id, farm_id, name, time_zone) values ('${organization}', '${id(3)}', '${id(2)}', 'Site', 'UTC');
  insert into edge (organization_id, id, site_id, name, public_key, arch, agent_version, enrolled_at)
    values ('${organization}', '${id(4)}', '${id(3)}', 'edge', 'key', 'x86_64', '0.1.0', now());
  insert into collection (organization_id, id, site_id, name) values ('${organization}', '${id(5)}', '${id(3)}', 'Lab');
  insert into device (organization_id, id, site_id, collection_id, name, mac)
    values ('${organization}', '${id(6)}', '${id(3)}', '${id(5)}', 'pc', '02:bf:00:00:00:01');
  insert into boot (organization_id, id, edge_id, site_id, device_id, mac, revision, change, started_at, received_at, updated_at,
      outcome, total_us, bytes_out, retries, simulated, generated, phases, facts, guest)
    select '${organization}', ('00000000-0000-4000-8000-00000000010' || n)::uuid, '${id(4)}', '${id(3)}', '${id(6)}',
      '02:bf:00:00:00:01', 1, n, ('2026-10-0' || n || ' 23:59:00Z')::timestamptz,
      ('2026-10-0' || n + 1 || ' 00:01:00Z')::timestamptz, now(),
      (case n when 3 then null else 'ready' end)::"BootOutcome", n * 1000000, 5, 0, false, false,
      jsonb_build_array(jsonb_build_object('name', 'dhcp', 'startUs', 0, 'durationUs', n * 1000000, 'bytesIn', 7)), '{"reconnects":0}', '{"steps":[]}'
    from generate_series(1, 3) as n;
  insert into power_order (organization_id, id, device_id, "order", requested_at, expires_at, taken_at, taken_boot_id)
    values ('${organization}', '${id(7)}', '${id(6)}', 'restart', now(), now(), now(), '${id(101)}');
  insert into boot_capture (organization_id, boot_id, site_id, received_at, packet_count, size_bytes, pcap)
    values ('${organization}', '${id(102)}', '${id(3)}', now(), 1, 24, '\\x00');`

test('boots of a release before partitions are there afterwards, with details, sums and what names them', async () => {
  const earlier = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-migrations-'))
  for (const name of readdirSync(migrationsFolder).filter((name) => name < partitioned))
    cpSync(path.join(migrationsFolder, name), path.join(earlier, name), { recursive: true })
  const database = await createEmptyDatabase()
  const client = new pg.Client({ connectionString: database.url })
  try {
    await migrate(database.url, { apiUrl: database.apiUrl, folder: earlier })
    await client.connect()
    await client.query(rows)
    expect(await migrate(database.url, { apiUrl: database.apiUrl })).toContain(partitioned)
    const read = async (sql: string) => (await client.query(sql)).rows
    expect(
      await read(
        `select id, received_on::text, outcome::text, phases, guest, change::int from boot
        join boot_detail using (organization_id, received_on) join boot_key using (organization_id, received_on)
        where boot_detail.boot_id = boot.id and boot_key.boot_id = boot.id order by id`.replace(
          'phases',
          'boot.phases',
        ),
      ),
    ).toEqual(
      [1, 2, 3].map((number) => ({
        id: id(100 + number),
        received_on: `2026-10-0${number + 1}`,
        outcome: number === 3 ? null : 'ready',
        phases: [{ name: 'dhcp', startUs: 0, durationUs: number * 1_000_000 }],
        guest: { steps: [] },
        change: number,
      })),
    )
    expect(
      await read(`select starts_at::date::text as day, booting_count, ready_count, total_us_sum::int, total_us_buckets, phases->'dhcp' as dhcp
        from boot_rollup where grain = 'day' order by 1`),
    ).toEqual([
      sums('2026-10-01', 1_000_000, { '509': 1 }),
      sums('2026-10-02', 2_000_000, { '541': 1 }),
      { ...sums('2026-10-03', 0, {}), booting_count: 1, ready_count: 0, dhcp: null },
    ])
    expect(await read('select taken_boot_id from power_order')).toEqual([{ taken_boot_id: id(101) }])
    expect(await read('select boot_id from boot_capture')).toEqual([{ boot_id: id(102) }])
  } finally {
    await client.end()
    await database.drop()
    rmSync(earlier, { recursive: true })
  }
})

function sums(day: string, us: number, buckets: Record<string, number>) {
  return {
    day,
    booting_count: 0,
    ready_count: 1,
    total_us_sum: us,
    total_us_buckets: buckets,
    dhcp: { count: 1, sumUs: us, buckets },
  }
}
