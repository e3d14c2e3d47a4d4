import { functionsIn } from './function-length.mjs'
import { isTest } from './sources.mjs'

const modules = ['core', 'agent']
/**
 * Its first parameter is the state that it changes. A deinit, or a function that only writes text, has none to check.
 */
const changesState = /^\s*(?:pub |inline )*fn (?!deinit\()\w+\(\s*(?:\w+: )\*(?!const\b|std\.Io\.Writer\b|Stringify\b)/

/**
 * Asserts say what must hold and what must not: at least one a function on average, over those that change state.
 * @type {import('../tidy.mjs').Rule}
 */
export const asserts = {
  name: 'asserts',
  instead: 'assert what must hold before or after, and what must not',
  find: (sources) => modules.flatMap((name) => lackOf(sources, `edge/streamer-zig/src/${name}`)),
}

function lackOf(sources, folder) {
  let functions = 0
  let count = 0
  for (const file of sources.files(new RegExp(`^${folder}/.*\\.zig$`))) {
    if (isTest(file)) continue
    const bodies = functionsIn(sources.lines(file)).map(({ body }) => body)
    functions += bodies.filter((body) => changesState.test(body.slice(0, 2).join(' '))).length
    count += sources.text(file).match(/^\s*(?:std\.debug\.)?assert\(/gm)?.length ?? 0
  }
  const lack = functions - count
  return lack > 0
    ? [{ file: folder, what: `${count} asserts in ${functions} functions that change state`, count: lack }]
    : []
}
