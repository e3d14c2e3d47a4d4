import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..')

export const edgeProgram = path.join(root, 'edge/streamer-zig/zig-out/bin/bootfarm-edge')
export const targetProgram = path.join(root, 'edge/streamer-zig/zig-out/bin/bootfarm-target')
export const simProgram = path.join(root, 'edge/streamer-zig/zig-out/bin/bootfarm-sim')
export const webProgram = path.join(root, 'apps/web/.next/standalone/apps/web/server.js')
export const startScript = path.join(root, 'scripts/start.mjs')
/** Passes connections on between a port and a socket file, and so into a namespace. */
export const relayProgram = path.join(root, 'scripts/start/relay-main.mjs')
export const bootTrace = path.join(root, 'e2e/traces/boot-trace-bios.csv')

/**
 * Makes a directory for one test file; `remove` deletes it. PostgreSQL's account may enter it, since all of that data
 * is in there too.
 */
export function scratchDirectory(): { path: string; remove(): void } {
  const directory = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-e2e-'))
  chmodSync(directory, 0o711)
  return { path: directory, remove: () => rmSync(directory, { recursive: true, force: true }) }
}
