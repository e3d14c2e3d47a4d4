import { appendFileSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { BootReport } from '@bootfarm/proto/uplink'
import { expect } from 'vitest'
import { lastLines, type Speaker } from './last-lines.ts'

const keptDirectory = path.resolve(import.meta.dirname, '../../test-results/machines')

/**
 * Records what machines did, for the end of `npm test` (scripts/test/machine-record.mjs); without its file nothing is
 * written.
 */

/** Records a finished boot. */
export function recordBoot(report: BootReport): void {
  record({ test: expect.getState().currentTestName ?? '', boot: report })
}

/** Keeps the consoles, logs and packets of a failed test, and prints the last lines of each. */
export function keepRun(testName: string, processes: Iterable<Speaker>, capture: string): void {
  const kept = path.join(keptDirectory, testName.replaceAll(/\W+/g, '-'))
  mkdirSync(kept, { recursive: true })
  const all = [...new Set(processes)]
  all.forEach((speaker, index) => {
    writeFileSync(path.join(kept, `process-${index}.log`), speaker.output)
  })
  if (existsSync(capture)) copyFileSync(capture, path.join(kept, 'network.pcap'))
  record({ kept })
  process.stderr.write(`consoles, logs and packets are kept in ${kept}\n${all.map(lastLines).join('\n')}\n`)
}

function record(entry: object): void {
  const file = process.env.BOOTFARM_MACHINE_RECORD
  if (file) appendFileSync(file, `${JSON.stringify(entry)}\n`)
}
