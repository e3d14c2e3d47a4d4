import { writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { scratchDirectory } from '../lib/lab/programs.ts'
import { parseSoakOptions } from './options.ts'
import { Soak } from './soak.ts'
import { asMarkdown, problemsOf } from './table.ts'

const progressIntervalMs = 10_000
const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export { parseSoakOptions }

/**
 * Runs the soak and prints its table.
 * @param results folder for the table, where the options ask for it
 * @returns true where nothing was lost, doubled or beyond its limit; false also where a signal ended it early
 */
export async function runSoak(
  options: ReturnType<typeof parseSoakOptions>,
  say: (text: string) => void,
  results: string,
): Promise<boolean> {
  const ending = new AbortController()
  // The programs are ended one after the other; a second signal changes nothing.
  const end = () => ending.abort()
  for (const signal of signals) process.on(signal, end)
  const scratch = scratchDirectory()
  const soak = new Soak(options, ending.signal)
  let timer: NodeJS.Timeout | undefined
  try {
    say(`Seed ${options.seed}; order: ${soak.order}`)
    say('Starting PostgreSQL, two API processes and three edges')
    await soak.start(scratch.path)
    timer = setInterval(() => say(soak.progress()), progressIntervalMs)
    if (!ending.signal.aborted) await soak.run()
    say(soak.progress())
    if (!ending.signal.aborted) {
      say('Waiting until everything is reported')
      const result = await soak.check()
      const circumstances = { date: new Date().toISOString(), processors: os.cpus().length }
      const table = asMarkdown(result, { options, order: soak.order, ...circumstances })
      process.stdout.write(`\n${table}\n`)
      if (options.write) {
        const file = path.join(results, `${circumstances.date.slice(0, 10)}-soak.md`)
        writeFileSync(file, table)
        say(`kept in ${file}`)
      }
      return problemsOf(result, options.kills).length === 0
    }
  } catch (error) {
    // Programs that a signal has ended cannot answer.
    if (!ending.signal.aborted) throw error
  } finally {
    clearInterval(timer)
    await soak.stop()
    scratch.remove()
    for (const signal of signals) process.off(signal, end)
  }
  say('ended by a signal: nothing is proved')
  return false
}
