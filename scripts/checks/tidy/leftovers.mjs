import { scriptSources, zigSources } from './sources.mjs'

/** A file that is one thing may be long; one that holds two ideas is split by idea, not by size. */
const fileLinesMax = 900

/** @type {import('../tidy.mjs').Rule} */
export const fileLength = {
  name: 'file-length',
  instead: `at most ${fileLinesMax}; split it by idea`,
  find(sources) {
    const found = []
    for (const file of [...sources.files(zigSources), ...sources.files(scriptSources)]) {
      const count = sources.lines(file).length - 1
      if (count > fileLinesMax) found.push({ file, what: `${count} lines` })
    }
    return found
  },
}

/** @type {import('../tidy.mjs').Rule} */
export const literalSpreads = {
  name: 'literal-spreads',
  instead: 'write its properties or elements where they belong',
  find: (sources) => matches(sources, scriptSources, /\.\.\.(\{|\[[^[\]]*\](?!\.))/, () => 'spreads a literal'),
}

const kinds = [
  { files: /\.(zig|ts|tsx|mjs)$/, pattern: /\b(TODO|FIXME|XXX)\b/, what: 'has a TODO: do it or leave it out' },
  {
    files: /\.(zig|ts|tsx|mjs)$/,
    pattern: /waitForTimeout|(test|describe|it)\.only/,
    what: 'waits for a time or runs one test alone: wait for what should happen',
  },
  {
    files: /\.(zig|ts|tsx|mjs|sh|sql|prisma|json|ya?ml|md)$/,
    pattern: /^(<{7}|>{7}) /,
    what: 'has a merge that was not finished: choose what holds',
  },
]

/** @type {import('../tidy.mjs').Rule} */
export const leftovers = {
  name: 'leftovers',
  instead: 'nothing unfinished stays in the tree',
  find: (sources) => kinds.flatMap(({ files, pattern, what }) => matches(sources, files, pattern, () => what)),
}

/** The checks themselves name the patterns that they look for. */
function matches(sources, files, pattern, what) {
  const found = []
  for (const file of sources.files(files)) {
    if (file.startsWith('scripts/checks/') || !new RegExp(pattern, 'm').test(sources.text(file))) continue
    for (const [index, line] of sources.lines(file).entries())
      if (pattern.test(line)) found.push({ file, line: index + 1, what: what(line) })
  }
  return found
}
