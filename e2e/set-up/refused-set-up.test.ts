import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { freePortArguments, refusals } from '../lib/assert/refused-starts.ts'
import { scratchDirectory, startScript } from '../lib/lab/programs.ts'

const scratch = scratchDirectory()
afterAll(() => scratch.remove())

const refused = refusals(path.join(scratch.path, 'data'))

/** Makes Node report something else about itself before the script runs. */
function pretending(name: string, statement: string): string[] {
  const file = path.join(scratch.path, `${name}.cjs`)
  writeFileSync(file, statement)
  return ['--require', file, startScript]
}

/** The scripts without anything fetched or built. */
function freshCopy(): string {
  const root = path.join(scratch.path, 'copy')
  const scripts = path.dirname(startScript)
  cpSync(scripts, path.join(root, 'scripts'), { recursive: true })
  return path.join(root, 'scripts/start.mjs')
}

function directoryWith(programs: string[]): string {
  const directory = path.join(scratch.path, 'bin')
  mkdirSync(directory, { recursive: true })
  for (const program of programs) symlinkSync(program, path.join(directory, path.basename(program)))
  return directory
}

describe('npm start names the missing requirement in one sentence', () => {
  test('a Node that is too old', async () => {
    const script = pretending('old', "Object.defineProperty(process.versions, 'node', { value: '16.20.0' })")
    expect(await refused(script)).toMatch(/Node 16\.20\.0 is too old; install Node 18 or newer/)
  })

  test('another operating system', async () => {
    const script = pretending('mac', "Object.defineProperty(process, 'platform', { value: 'darwin' })")
    expect(await refused(script)).toMatch(/this system is darwin-\w+; Bootfarm runs on Linux/)
  })

  test('a port that is in use', async () => {
    const server = net.createServer().listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const address = server.address()
    const port = typeof address === 'object' && address ? address.port : 0
    const sentence = await refused([startScript, '--web-port', String(port)])
    server.close()
    expect(sentence).toMatch(new RegExp(`port ${port} for the dashboard is already in use`))
  })

  test('an unknown option, and an invalid port', async () => {
    expect(await refused([startScript, '--wbe-port', '1'])).toMatch(/--wbe-port/)
    expect(await refused([startScript, '--web-port', '70000'])).toMatch(/--web-port needs a port from 1 to 65535/)
  })

  test('no Python', async () => {
    const env = { PATH: directoryWith([process.execPath]) }
    expect(await refused([freshCopy(), ...freePortArguments], env)).toMatch(/Python 3 is not installed/)
  })

  test.skipIf(process.getuid?.() !== 0)('no network', async () => {
    const script = fileURLToPath(new URL(`file://${path.join(scratch.path, 'copy/scripts/start.mjs')}`))
    const args = ['--net', process.execPath, script, ...freePortArguments]
    expect(await refused(args, {}, 'unshare')).toMatch(/fetching Zig .* failed \(is there a network\?\)/)
  })
})
