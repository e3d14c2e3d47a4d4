import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { checkBoundaries } from '../checks/boundaries.mjs'
import { checkMigrations } from '../checks/migrations.mjs'
import { checkTidy } from '../checks/tidy.mjs'
import { UserError } from '../lib/fail.mjs'
import { freePorts } from '../lib/free-ports.mjs'
import { ensureArm64 } from '../lib/machines/arm64.mjs'
import { ensureBootPrograms } from '../lib/machines/boot-programs.mjs'
import { ensureKernel } from '../lib/machines/kernel.mjs'
import { ensureSystemRoot, ensureSystemTree } from '../lib/machines/system-root.mjs'
import { edgeSource, inRoot, root } from '../lib/paths.mjs'
import { secondsOfMachine, withProcessorTime } from '../lib/processor-time.mjs'
import { say } from '../lib/progress.mjs'
import { ensureTestPackages } from '../lib/system-packages.mjs'
import {
  ensureApiTools,
  ensurePackages,
  ensurePrometheusClient,
  ensurePythonClientGenerator,
  ensureS3Gateway,
  ensureSchemathesis,
  ensureTuf,
  ensureZig,
  zigJobs,
} from '../lib/toolchain.mjs'
import { changedFiles, testChangedUnits, testChangedZig } from './changed.mjs'
import { MachineRecord } from './machine-record.mjs'
import { withProduct } from './product.mjs'
import {
  command,
  idling,
  inOwnNetwork,
  playwright,
  problems,
  turbo,
  turboCheck,
  unhurried,
  vitest,
  yielding,
} from './runners.mjs'
import { oneCheck, Tally } from './tally.mjs'
import { testLightModules, zigTrack } from './zig-track.mjs'

/**
 * Runs every layer, quick ones first; returns the exit code. `only` are layer names, or empty for all; long layers run
 * if they are named or `withLong` is true.
 */
export async function testEverything(only, { withLong }) {
  const scratch = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-test-'))
  const tally = new Tally()
  const record = new MachineRecord(path.join(scratch, 'machines.jsonl'))
  const machineBefore = secondsOfMachine()
  try {
    const zig = await ensureZig()
    const layer = layerRunner(tally, only, withLong)
    const isLong = withLong || only.some((name) => longLayers.includes(name))
    if (only.includes('quick')) await testQuickly(layer, { zig, scratch })
    else if (only.length > 0 && only.every((name) => staticLayers.includes(name))) await testStatic(layer, zig)
    else await testProduct(layer, { zig, scratch, tally, record, isLong })
  } finally {
    const { busy, idle } = secondsOfMachine()
    const [worked, rested] = [busy - machineBefore.busy, idle - machineBefore.idle]
    say(`all processors: ${worked.toFixed(0)} s busy, ${rested.toFixed(0)} s idle`)
    record.print()
    rmSync(scratch, { recursive: true, force: true })
  }
  for (const reason of tally.reasons) process.stdout.write(`skipped: ${reason}\n`)
  const skipIsFailure = process.env.CI === 'true' && tally.skipped > 0
  if (skipIsFailure) process.stdout.write('CI=true: a skipped test is a failure\n')
  process.stdout.write(`\n${tally.closingLines().join('\n')}\n`)
  return tally.failed > 0 || tally.passed === 0 || skipIsFailure ? 1 : 0
}

/** `npm test -- quick`: static checks, types, and the unit tests of what changed. */
async function testQuickly(layer, { zig, scratch }) {
  const changed = changedFiles()
  await testStatic(layer, zig)
  const generated = await turbo('generate')
  if (generated.code !== 0) throw new UserError(generated.output)
  await Promise.all([
    layer('typecheck', 80, () => turboCheck('typecheck')),
    layer.named('changed-units', 60, () => testChangedUnits(scratch, changed)),
    layer.named('changed-zig', 60, () => testChangedZig(zig, changed)),
  ])
}

/** Runs the named layers, or all. */
async function testProduct(layer, { zig, scratch, tally, record, isLong }) {
  // It needs nothing else, and most layers start when it is done; fetching packages waits for the network.
  const edgeBuilt = buildEdge(layer, zig)
  await ensurePackages()
  const system = await ensureTestPackages(isLong)
  // Mostly waits for the network and the disk. If it fails, the tests that need it report why.
  const debian = layer.wanted('machines') ? ensureSystemTree().catch(() => undefined) : undefined
  const env = { BOOTFARM_MISSING_PACKAGES: system.missing.join(' ') }
  await testStatic(layer, zig)
  const machineEnv = async () => {
    await debian
    const kernelMissing = await ensureKernel('virtual')
    const programsMissing = await ensureBootPrograms()
    return {
      ...env,
      ...record.env,
      BOOTFARM_NO_KERNEL: kernelMissing ?? '',
      BOOTFARM_NO_BOOT_PROGRAMS: programsMissing ?? '',
    }
  }
  const machineProduct = (project) => testMachineProduct(scratch, system.missing, project)
  const generated = turbo('generate', yielding)
  const webBuilt = buildWeb(layer, generated)
  const services = webBuilt.then(() => testServices(layer, scratch, generated))
  await Promise.all([edgeBuilt, webBuilt])
  await Promise.all([
    timed(layer, { scratch, env, tally }),
    browser(layer, { scratch, tally }),
    services.then(() => load(layer, { scratch, env })),
    testLightModules(layer, zig),
  ])
  await Promise.all([
    machines(layer, { scratch, machineEnv }),
    zigTrack(layer, zig),
    layer('typecheck', 80, () => turboCheck('typecheck', idling)),
  ])
  await layer('machine-boot', 100, () => machineProduct('machine-boot'))
  await longTrack(layer, { zig, scratch, machineEnv, machineProduct })
}

/** Layers that take too long for every change. */
const longLayers = [
  'zig-test-safe',
  'simulation-reports',
  'content',
  'machines-long',
  'boot-paths',
  'machine-power',
  'store-browser',
  'install-long',
  'lan',
]

/** Layers of `testStatic`: they examine the source, and need nothing built. */
const staticLayers = ['format', 'zig-format', 'boundaries', 'tidy', 'migrations']

/** The layers that `quick` stands for. */
const quickLayers = [...staticLayers, 'typecheck', 'changed-units', 'changed-zig']

/** Layers that run the edge's programs themselves: naming one in a fresh clone builds these programs. */
const programLayers = ['set-up', 'sockets', 'uplink', 'machines', 'faults', 'install', 'reports', ...longLayers]

/**
 * A layer prints its whole output when it is over, because two may run side by side. Its budget is processor time, on
 * which what runs beside it has little influence.
 */
function layerRunner(tally, named, withLong) {
  const only = named.flatMap((name) => (name === 'quick' ? quickLayers : [name]))
  if (only.some((name) => programLayers.includes(name))) only.push('zig-build')
  const wanted = (name, isIncluded) => (only.length === 0 ? isIncluded : only.includes(name))
  const layer = async (name, budgetSeconds, work, isIncluded = true) => {
    if (!wanted(name, isIncluded)) return
    const begin = performance.now()
    const { result, processorSeconds } = await withProcessorTime(() =>
      work().catch((error) => ({ output: error.stack, ...oneCheck(false) })),
    )
    const { output, slowest = [], ...counts } = result
    tally.add(name, counts, output)
    const seconds = (performance.now() - begin) / 1000
    const verdict = counts.failed ? 'FAILED' : 'ok'
    say(
      `${verdict.padEnd(6)} ${name}: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped (${seconds.toFixed(1)} s; processor ${processorSeconds.toFixed(0)} s of ${budgetSeconds} s)`,
    )
    if (processorSeconds > budgetSeconds)
      for (const file of slowest) say(`         ${file.seconds.toFixed(1)} s ${file.name}`)
    if (counts.failed) process.stdout.write(`${output.slice(-20_000)}\n`)
  }
  layer.wanted = (name) => wanted(name, true)
  layer.long = (name, budgetSeconds, work) => layer(name, budgetSeconds, work, withLong)
  layer.named = (name, budgetSeconds, work) => layer(name, budgetSeconds, work, false)
  return layer
}

/** Layers that take too long for every change: `npm run test:all`. */
async function longTrack(layer, { zig, scratch, machineEnv, machineProduct }) {
  await layer.long('content', 600, () => vitest(scratch, 'e2e', ['content/'], {}, [], inOwnNetwork))
  await layer.long('machines-long', 2000, async () => {
    const env = { ...(await machineEnv()), BOOTFARM_NO_ARM64: (await ensureArm64(zig)) ?? '' }
    return vitest(scratch, 'e2e', ['machines-long/', 'sockets-long/'], env, [], unhurried)
  })
  await layer.long('boot-paths', 4000, async () =>
    vitest(scratch, 'e2e', ['boot-paths/'], await machineEnv(), [], unhurried),
  )
  await layer.long('migrations-long', 300, () => vitest(scratch, 'packages/db/long', [], {}))
  await layer.long('object-store', 600, async () => {
    const env = { BOOTFARM_S3_GATEWAY: await ensureS3Gateway() }
    return vitest(scratch, 'apps/api/long', [], env)
  })
  await layer.long('schemathesis-long', 900, () => schemathesis(scratch, { examples: 100, seconds: 600 }))
  await layer.long('machine-power', 300, () => machineProduct('machine-power'))
  await layer.long('store-browser', 300, () => withProduct(scratch, (env) => playwright(scratch, env, 'store-browser')))
  await layer.long('install-long', 600, () => testInstallOnMachine(scratch, machineEnv))
  await layer.long('lan', 900, async () => vitest(scratch, 'e2e', ['lan/'], await machineEnv()))
}

/** An emulated server reaches the control plane at a separate address, which the product gets as a setting. */
async function testInstallOnMachine(scratch, machineEnv) {
  const [port] = await freePorts(1)
  const env = { ...(await machineEnv()), EDGE_URL: `http://10.0.2.2:${port}` }
  Object.assign(process.env, { EDGE_URL: env.EDGE_URL })
  try {
    return await withProduct(scratch, (productEnv) =>
      vitest(scratch, 'e2e', ['install-long/'], { ...productEnv, ...env }),
    )
  } finally {
    delete process.env.EDGE_URL
  }
}

/** Runs a browser against `npm start -- --machine`; skipped if no machine can be emulated. */
async function testMachineProduct(scratch, missingPackages, project) {
  const skipped = (why) => ({
    output: '',
    passed: 0,
    failed: 0,
    skipped: 1,
    reasons: [`npm start -- --machine: ${why}`],
  })
  if (process.getuid() !== 0) return skipped('network namespaces need root')
  if (missingPackages.length > 0) return skipped(`not installed: ${missingPackages.join(', ')}`)
  const root = await ensureSystemRoot()
  if ('missing' in root) return skipped(root.missing)
  return withProduct(scratch, (env) => playwright(scratch, env, project), ['--machine'])
}

/** Checks that fail at once if a change is incomplete. */
async function testStatic(layer, zig) {
  await ensurePackages()
  await layer('format', 10, () =>
    command(inRoot('node_modules/.bin/biome'), ['ci', '--error-on-warnings', '--max-diagnostics=50', '.'], root),
  )
  await layer('zig-format', 10, () => command(zig, ['fmt', '--check', '.'], edgeSource))
  await layer('boundaries', 5, () => problems(checkBoundaries()))
  await layer('tidy', 5, () => problems(checkTidy()))
  await layer('migrations', 5, () => problems(checkMigrations()))
}

/** Builds the programs that all other layers run. */
function buildEdge(layer, zig) {
  return layer('zig-build', 200, () => command(zig, ['build', zigJobs], edgeSource))
}

/**
 * First, since products start with it. The imports of services are built before: turbo does not rewrite its own output.
 */
async function buildWeb(layer, generated) {
  await generated
  await layer('web-build', 60, () => turboCheck('build', yielding))
}

/**
 * Their tests import the database client, which is generated from its schema. They run at lower priority than layers
 * with clocks.
 */
function testServices(layer, scratch, generated) {
  return layer('services', 900, async () => {
    const { code, output } = await generated
    return code === 0 ? vitest(scratch, '.', [], {}, [], yielding) : { output, ...oneCheck(false) }
  })
}

/**
 * Layers with clocks. Programs on sockets and programs that are killed wait for the network's clocks most of the time,
 * so they run side by side.
 */
async function timed(layer, { scratch, env, tally }) {
  await layer('set-up', 30, () => vitest(scratch, 'e2e', ['set-up/'], env))
  await Promise.all([
    sockets(layer, { scratch, env }).then(() => uplink(layer, { scratch, env })),
    faults(layer, { scratch, env, tally }),
  ])
}

/**
 * Emulated machines need a processor each: beside other layers with clocks, each of three runs failed once, at another
 * clock each time. What only computes takes the processor that they leave.
 */
function machines(layer, { scratch, machineEnv }) {
  return layer('machines', 500, async () => vitest(scratch, 'e2e', ['machines/'], await machineEnv()))
}

const sideBySide = ['--fileParallelism', '--maxWorkers=2']

function sockets(layer, { scratch, env }) {
  return layer('sockets', 170, () => vitest(scratch, 'e2e', ['sockets/'], env, sideBySide))
}

/** Edges with a control plane of their own. */
function uplink(layer, { scratch, env }) {
  return layer('uplink', 220, () => vitest(scratch, 'e2e', ['uplink/'], env, sideBySide, unhurried))
}

/** Programs are killed here, so no browser uses this product. */
function faults(layer, { scratch, env, tally }) {
  return onProduct(layer, { scratch, tally, names: ['faults', 'install'] }, async (productEnv) => {
    await layer('faults', 200, () => vitest(scratch, 'e2e', ['faults/'], productEnv, [], unhurried))
    await layer('install', 70, () => vitest(scratch, 'e2e', ['install/'], { ...productEnv, ...env }))
  })
}

/** Runs beside layers with clocks, which leave half of two processors idle; these have limits, but no clocks. */
function browser(layer, { scratch, tally }) {
  return onProduct(layer, { scratch, tally, names: ['browser'] }, (productEnv) =>
    layer('browser', 180, () => playwright(scratch, productEnv, 'dashboard', yielding)),
  )
}

/**
 * python-tuf must make the same repositories as the committed ones, reach the same verdicts, and update itself from
 * repositories that the release script makes.
 */
function updateVectors(layer) {
  return layer('update-vectors', 10, async () => {
    const env = { PYTHONPATH: await ensureTuf() }
    const script = inRoot('packages/proto/test/tuf_vectors.py')
    const vectors = await yielding('python3', [script, '--check'], { cwd: root, env })
    const made = await yielding('python3', [inRoot('packages/proto/test/tuf_repository.py'), process.execPath], {
      cwd: root,
      env,
    })
    return { output: vectors.output + made.output, ...oneCheck(vectors.code === 0 && made.code === 0) }
  })
}

/** Sends the API unlikely requests, and restarts killed programs, which mostly waits. */
async function load(layer, { scratch, env }) {
  await updateVectors(layer)
  await Promise.all([asked(layer, scratch), reports(layer, { scratch, env })])
}

async function asked(layer, scratch) {
  await layer('schemathesis', 60, () => schemathesis(scratch, { examples: 2, seconds: 20 }, yielding))
  await layer('clients', 90, () => clients(scratch))
}

function reports(layer, { scratch, env }) {
  return layer('reports', 140, async () => {
    await ensurePrometheusClient()
    return vitest(scratch, 'e2e', ['reports/'], env, [], yielding)
  })
}

/** Layers of one product, which is started if one of them is wanted; a failed start is a failure. */
async function onProduct(layer, { scratch, tally, names }, work) {
  if (!names.some((name) => layer.wanted(name))) return
  const { processorSeconds } = await withProcessorTime(() =>
    withProduct(scratch, work).catch((error) => {
      process.stdout.write(`${error.message}\n`)
      tally.add(names.join(', '), oneCheck(false), error.message)
    }),
  )
  say(`  the product of ${names.join(', ')}: processor ${processorSeconds.toFixed(0)} s`)
}

/** Linters of the API's own description, and clients that are made of it. */
async function clients(scratch) {
  const env = {
    BOOTFARM_API_TOOLS: await ensureApiTools(),
    BOOTFARM_API_PYTHON_TOOLS: await ensurePythonClientGenerator(),
  }
  return vitest(scratch, 'apps/api/clients', [], env, [], yielding)
}

/** Sends each operation of the API's own description unlikely requests. */
async function schemathesis(scratch, { examples, seconds }, run) {
  const env = {
    BOOTFARM_SCHEMATHESIS: await ensureSchemathesis(),
    BOOTFARM_SCHEMATHESIS_EXAMPLES: String(examples),
    BOOTFARM_SCHEMATHESIS_SECONDS: String(seconds),
  }
  return vitest(scratch, 'apps/api/schemathesis', [], env, [], run)
}
