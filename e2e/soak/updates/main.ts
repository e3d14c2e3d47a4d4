import { writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { scratchDirectory } from '../../lib/lab/programs.ts'
import { parseUpdateSoakOptions, type UpdateSoakOptions } from './options.ts'
import { UpdateSoak } from './soak.ts'
import { asMarkdown, problemsOf } from './table.ts'

export { parseUpdateSoakOptions }

const progressIntervalMs = 10_000
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Runs the soak and prints its table.
 * @param results folder for the table, where the options ask for it
 * @returns true where nothing was lost or beyond its limit; false also where a signal ended it early
 */
export async function runUpdateSoak(
  options: UpdateSoakOptions,
  say: (text: string) => void,
  results: string,
): Promise<boolean> {
  const ending = new AbortController()
  const end = () => ending.abort()
  for (const signal of signals) process.on(signal, end)
  const scratch = scratchDirectory()
  const soak = new UpdateSoak(options, ending.signal, say)
  let timer: NodeJS.Timeout | undefined
  const work = async () => {
    say('Starting PostgreSQL, the API, an edge and its devices')
    await soak.start(scratch.path)
    timer = setInterval(() => soak.progress().then(say, say), progressIntervalMs)
    await soak.run()
  }
  try {
    await work().catch((error: unknown) => {
      // Programs that a signal has ended cannot answer.
      if (!ending.signal.aborted) throw error
    })
    clearInterval(timer)
    const result = await soak.check()
    const date = new Date().toISOString()
    const table = asMarkdown(result, { options, date, processors: os.cpus().length })
    process.stdout.write(`\n${table}\n`)
    if (ending.signal.aborted) say('ended by a signal: nothing is proved')
    else if (options.write) {
      const file = path.join(results, `${date.slice(0, 10)}-update-soak.md`)
      writeFileSync(file, table)
      say(`kept in ${file}`)
    }
    return !ending.signal.aborted && problemsOf(result, options).length === 0
  } finally {
    clearInterval(timer)
    await soak.stop()
    scratch.remove()
    for (const signal of signals) process.off(signal, end)
  }
}
