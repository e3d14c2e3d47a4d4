import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { inRoot } from '../lib/paths.mjs'
import { say } from '../lib/progress.mjs'

/**
 * Keeps a run: its table in docs/results, which is committed, and its raw figures in `bench-results/`, which git
 * ignores.
 * @param {string} name of the benchmark
 * @param {{ date: string }} result
 * @param {string} markdown
 */
export function keepResult(name, result, markdown) {
  const base = `${result.date.slice(0, 10)}-${name}`
  const kept = [
    { file: inRoot('docs/results', `${base}.md`), text: markdown },
    { file: inRoot('bench-results', `${base}.json`), text: `${JSON.stringify(result, null, 2)}\n` },
  ]
  for (const { file, text } of kept) {
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
    say(`Written to ${path.relative(inRoot(), file)}`)
  }
}
