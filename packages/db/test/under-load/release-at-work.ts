import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { TestDatabase } from '../test-database.ts'

const writerCount = 3
const devicesPerWriter = 4
/** Between two requests of a connection. */
const pauseMs = 5
/**
 * A caller that waits longer is cancelled, which fails the test. Far more than a migration may delay anybody, for busy
 * machines.
 */
const statementLimitMs = 30_000
/** For a writer that a deadlock has chosen; the API's callers retry, too. */
const deadlock = '40P01'
const organization = '00000000-0000-4000-8000-000000000001'
const id = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
const [farm, site, edge, collection] = [id(2), id(3), id(4), id(5)]

const rows = `
  insert into organization (id, slug, name) values ('${organization}', 'at-work', 'At work');
  insert into farm (organization_id, id, name) values ('${organization}', '${farm}', 'Farm');
  insert into site (organization_id, id, farm_id, name, time_zone) values ('${organization}', '${site}', '${farm}', 'Site', 'UTC');
  insert into edge (organization_id, id, site_id, name, public_key, arch, agent_version, enrolled_at)
    values ('${organization}', '${edge}', '${site}', 'edge', 'key', 'x86_64', '0.1.0', now());
  insert into collection (organization_id, id, site_id, name) values ('${organization}', '${collection}', '${site}', 'Lab');
  insert into report_cursor (organization_id, edge_id, boot_epoch, updated_at)
    select '${organization}', '${edge}', n, now() from generate_series(1, ${writerCount}) as n;`

/** The API's statements for a boot report. */
const takeBoot = [
  `select ensure_boot_partitions((now() at time zone 'UTC')::date, (now() at time zone 'UTC')::date)`,
  `insert into boot_key (organization_id, boot_id, received_on, change) values ('${organization}', $1, (now() at time zone 'UTC')::date, 1)`,
  `insert into boot (organization_id, id, received_on, edge_id, site_id, mac, revision, started_at, received_at, updated_at, outcome,
      total_us, bytes_out, retries, simulated, generated, phases)
    values ('${organization}', $1, (now() at time zone 'UTC')::date, '${edge}', '${site}', '02:bf:00:00:00:01', 1, now(), now(), now(),
      'ready', 5, 5, 0, false, false, '[]')`,
  `insert into boot_detail (organization_id, boot_id, received_on, phases, facts)
    values ('${organization}', $1, (now() at time zone 'UTC')::date, '[]', '{}')`,
]

export interface Lost {
  devices: string[]
  boots: string[]
  acknowledgedSequences: string[]
}

/** Connections of a release that write and read all the time, and keep what was committed. */
export class ReleaseAtWork {
  readonly #database: TestDatabase
  readonly #names = new Map<string, string>()
  readonly #boots = new Set<string>()
  readonly #sequences = new Map<number, number>()
  readonly #rounds = new Map<string, number>()
  #failure: unknown
  #isOver = false
  #works: Promise<void>[] = []

  constructor(database: TestDatabase) {
    this.#database = database
  }

  /** Rows that all of them work on, and the work. */
  async begin(): Promise<void> {
    const owner = new pg.Client({ connectionString: this.#database.url })
    await owner.connect()
    try {
      await owner.query(rows)
    } finally {
      await owner.end()
    }
    const writers = Array.from({ length: writerCount }, (_, index) => index + 1)
    this.#works = [
      ...writers.map((number) => this.#repeat(`writer ${number}`, (client) => this.#write(client, number))),
      this.#repeat('reader', (client) => this.#read(client)),
    ]
    await this.moves()
  }

  /** Resolves when each has done something more; rejects when one cannot continue. */
  async moves(): Promise<void> {
    const names = [...Array.from({ length: writerCount }, (_, index) => `writer ${index + 1}`), 'reader']
    const before = new Map(this.#rounds)
    const isBehind = (name: string) => (this.#rounds.get(name) ?? 0) < (before.get(name) ?? 0) + 2
    while (names.some(isBehind)) {
      if (this.#failure) throw this.#failure
      await delay(5)
    }
  }

  /** Rejects if one could not continue. */
  async end(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#works)
    if (this.#failure) throw this.#failure
  }

  /** Rows that were committed and are missing. */
  async lost(): Promise<Lost> {
    const owner = new pg.Client({ connectionString: this.#database.url })
    await owner.connect()
    try {
      const devices = await owner.query<{ id: string; name: string }>('select id, name from device')
      const boots = await owner.query<{ id: string }>(
        'select id from boot join boot_key on boot_key.boot_id = id join boot_detail on boot_detail.boot_id = id',
      )
      const cursors = await owner.query<{ epoch: number; seq: number }>(
        'select boot_epoch::int as epoch, acked_seq::int as seq from report_cursor',
      )
      const names = new Map(devices.rows.map((row) => [row.id, row.name]))
      const there = new Set(boots.rows.map((row) => row.id))
      const sequences = new Map(cursors.rows.map(({ epoch, seq }) => [epoch, seq]))
      return {
        devices: [...this.#names].flatMap(([device, name]) =>
          names.get(device) === name ? [] : [`${device}: ${name} was committed, ${names.get(device)} is there`],
        ),
        boots: [...this.#boots].filter((boot) => !there.has(boot)),
        acknowledgedSequences: [...this.#sequences].flatMap(([epoch, seq]) =>
          sequences.get(epoch) === seq ? [] : [`${epoch}: ${seq}, not ${sequences.get(epoch)}`],
        ),
      }
    } finally {
      await owner.end()
    }
  }

  get committedBoots(): number {
    return this.#boots.size
  }

  async #repeat(name: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
    const client = new pg.Client({
      connectionString: this.#database.apiUrl,
      application_name: name,
      options: `-c statement_timeout=${statementLimitMs}`,
    })
    try {
      await client.connect()
      while (!this.#isOver) {
        await work(client)
        await delay(pauseMs)
        this.#rounds.set(name, (this.#rounds.get(name) ?? 0) + 1)
      }
    } catch (error) {
      this.#failure ??= new Error(`${name} could not go on: ${String(error)}`, { cause: error })
    } finally {
      await client.end()
    }
  }

  async #write(client: pg.Client, writer: number): Promise<void> {
    const round = (this.#rounds.get(`writer ${writer}`) ?? 0) + 1
    const number = round % devicesPerWriter
    const deviceId = id(1000 * writer + number)
    const name = `pc-${writer}-${number}-${round}`
    await this.#transaction(client, async () => {
      const changed = await client.query({
        name: 'rename device',
        text: `update device set name = $2 where organization_id = '${organization}' and id = $1`,
        values: [deviceId, name],
      })
      if (changed.rowCount) return
      const mac = `02:bf:00:00:0${writer}:0${number}`
      await client.query(
        `insert into device (organization_id, id, site_id, collection_id, name, mac)
        values ('${organization}', $1, '${site}', '${collection}', $2, $3)`,
        [deviceId, name, mac],
      )
    })
    this.#names.set(deviceId, name)
    await this.#report(client, writer)
  }

  /** A boot and the place up to which its edge has reported, in one transaction. */
  async #report(client: pg.Client, epoch: number): Promise<void> {
    const bootId = randomUUID()
    const sequence = (this.#sequences.get(epoch) ?? 0) + 1
    await this.#transaction(client, async () => {
      for (const text of takeBoot) await client.query(text, text.includes('$1') ? [bootId] : [])
      await client.query(
        `update report_cursor set acked_seq = $2, updated_at = now()
        where organization_id = '${organization}' and edge_id = '${edge}' and boot_epoch = $1`,
        [epoch, sequence],
      )
      await client.query(`update edge set heartbeat_at = now() where organization_id = '${organization}'`)
    })
    this.#boots.add(bootId)
    this.#sequences.set(epoch, sequence)
  }

  async #read(client: pg.Client): Promise<void> {
    await this.#transaction(client, async () => {
      await client.query({
        name: 'list devices',
        text: `select device.id, device.name, collection.name as place from device join collection on collection.id = collection_id
          where device.organization_id = $1 order by device.name, device.id`,
        values: [organization],
      })
      await client.query({
        name: 'list boots',
        text: 'select id, outcome, total_us from boot where organization_id = $1 order by started_at desc limit 20',
        values: [organization],
      })
    })
  }

  /** Sets the organization like the API. Retries after a deadlock: nothing was promised. */
  async #transaction(client: pg.Client, work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        await client.query(`begin; set local bootfarm.organization_id = '${organization}'`)
        await work()
        await client.query('commit')
        return
      } catch (error) {
        await client.query('rollback')
        if ((error as { code?: string }).code !== deadlock) throw error
      }
    }
  }
}
