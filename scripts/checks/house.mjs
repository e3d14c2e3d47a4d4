// Sizes, leftovers and documents that tell the truth.
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { checkConsoleLines } from './console-lines.mjs'
import { trackedFiles } from './tracked-files.mjs'
import { checkZigBase } from './zig-base.mjs'

/** A file that is one thing may be long; one that holds two ideas is split by idea, not by size. */
const fileLinesMax = 900

export function checkHouse() {
  const problems = []
  for (const file of trackedFiles(/\.(zig|ts|tsx|mjs)$/)) {
    const text = readFileSync(file, 'utf8')
    const lines = text.split('\n').length - 1
    if (lines > fileLinesMax) problems.push(`${file}: ${lines} lines; split it by idea (at most ${fileLinesMax})`)
    if (/\b(TODO|FIXME|XXX)\b/.test(text) && !file.startsWith('scripts/checks/'))
      problems.push(`${file}: has a TODO; do it or leave it out`)
    if (/waitForTimeout|test\.only|describe\.only|it\.only/.test(text) && !file.startsWith('scripts/checks/')) {
      problems.push(`${file}: waits for a time or runs only one test; wait for what should happen`)
    }
  }
  for (const file of trackedFiles(/\.(zig|ts|tsx|mjs|sh|sql|prisma|json|ya?ml|md)$/)) {
    if (/^(<{7}|>{7}) /m.test(readFileSync(file, 'utf8')))
      problems.push(`${file}: has a merge that was not made; choose what holds`)
  }
  for (const file of trackedFiles(/^(README\.md|docs\/.*\.md|packages\/.*\.md)$/)) problems.push(...deadPaths(file))
  problems.push(...checkConsoleLines())
  problems.push(...checkZigBase())
  return problems
}

/** Relative links, and `paths/in/back.ticks` that look like files of this project, must exist. */
function deadPaths(file) {
  const text = readFileSync(file, 'utf8')
  const links = [...text.matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)].map((match) =>
    path.join(path.dirname(file), match[1]),
  )
  const ticks = [...text.matchAll(/`((?:apps|packages|edge|e2e|scripts|docs)\/[\w./-]+)`/g)].map((match) => match[1])
  const inPackage = [...text.matchAll(/`((?:src|vectors)\/[\w./-]+\.\w+)`/g)].map((match) =>
    path.join(path.dirname(file), match[1]),
  )
  return [...links, ...ticks, ...(file.startsWith('packages/') ? inPackage : [])]
    .filter((target) => !existsSync(target))
    .map((target) => `${file}: names ${target}, which does not exist`)
}
