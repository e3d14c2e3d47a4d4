import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import path from 'node:path'
import { emulator } from '../../lib/machines/emulator.mjs'
import { secondsOfProcess } from '../../lib/processor-time.mjs'
import { WatchedProcess } from '../watched-process.mjs'
import { readyLine } from './guests.mjs'

/** For one boot: several times what the slowest takes on a busy machine. */
const bootLimitMs = 180_000
const mac = '52:54:00:78:00:00'

/**
 * Measures from power-on to the machine's line on its console, in ms, the phases where the edge reports them, and the
 * processor time of the machine and of the first server.
 * @param {import('../../lib/lab/segment.mjs').Segment} segment
 */
export async function bootOnce(scratch, segment, { firmware, memoryMib, start, served }) {
  const directory = mkdtempSync(path.join(scratch, 'boot-'))
  chmodSync(directory, 0o755)
  const servers = await start(segment, directory, served)
  const uefiVariables = path.join(directory, 'uefi-variables.fd')
  const options = { firmware, mac, tap: 'tap0', uefiVariables, memoryMib, mayRestart: false }
  const { command, args } = emulator(options)
  const machine = new WatchedProcess(segment.onSwitch(command, args))
  try {
    const { afterMs } = await machine.waitFor(new RegExp(readyLine), bootLimitMs)
    const [machineSeconds, serverSeconds] = [machine.pid, servers[0].pid].map(secondsOfProcess)
    return { readyMs: afterMs, phases: phasesOf(servers[0].output), machineSeconds, serverSeconds }
  } finally {
    await machine.stop()
    for (const server of servers) await server.stop()
    rmSync(directory, { recursive: true, force: true })
  }
}

/** Returns the ms of each phase of the last boot in the edge's lines; undefined for others. */
function phasesOf(output) {
  const lines = output.split('\n').filter((line) => line.startsWith('{"id"') && line.endsWith('}'))
  const report = lines.map((line) => JSON.parse(line)).findLast(({ outcome }) => outcome?.kind === 'ready')
  if (!report) return undefined
  return Object.fromEntries(report.phases.map(({ name, durationUs = 0 }) => [name, durationUs / 1000]))
}
