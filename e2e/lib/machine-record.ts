import { appendFileSync } from 'node:fs'
import type { BootReport } from '@bootfarm/proto/uplink'
import { expect } from 'vitest'

/** What machines did, for the end of `npm test` (scripts/test/machine-record.mjs); nothing is written without its file. */

/** A boot that is over. */
export function recordBoot(report: BootReport): void {
  record({ test: expect.getState().currentTestName ?? '', boot: report })
}

/** Where a failed test's consoles, logs and packets are. */
export function recordKept(directory: string): void {
  record({ kept: directory })
}

function record(entry: object): void {
  const file = process.env.BOOTFARM_MACHINE_RECORD
  if (file) appendFileSync(file, `${JSON.stringify(entry)}\n`)
}
