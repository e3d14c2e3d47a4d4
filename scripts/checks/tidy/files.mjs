import path from 'node:path'
import { isTest, scriptSources, zigSources } from './sources.mjs'

const folderFilesMax = 30

/** @type {import('../tidy.mjs').Rule} */
export const folderSize = {
  name: 'folder-size',
  instead: `at most ${folderFilesMax}, tests not counted; make folders by subject`,
  find(sources) {
    const counts = new Map()
    for (const file of [...sources.files(zigSources), ...sources.files(scriptSources)]) {
      const folder = path.dirname(file)
      if (!isTest(file)) counts.set(folder, (counts.get(folder) ?? 0) + 1)
    }
    return [...counts]
      .filter(([, count]) => count > folderFilesMax)
      .map(([file, count]) => ({ file, what: `${count} source files in a folder`, count: count - folderFilesMax }))
  },
}

/** Those of e2e test the whole product, so no file is theirs. @type {import('../tidy.mjs').Rule} */
export const testNames = {
  name: 'test-names',
  instead:
    'a test is named after a file beside it (x_test.zig, x.test.ts); move it there, or into the test of that file',
  find(sources) {
    const all = new Set(sources.files(/\.(zig|tsx?|mjs)$/))
    const hasSubject = (file) => {
      const stem = file.replace(/(_test\.zig|\.(test|spec)\.tsx?)$/, '')
      const endings = file.endsWith('.zig') ? ['.zig'] : ['.ts', '.tsx', '.mjs']
      return endings.some((ending) => all.has(`${stem}${ending}`))
    }
    return [...all]
      .filter((file) => isTest(file) && !/^e2e\/(?!lib\/|soak\/)/.test(file) && !hasSubject(file))
      .map((file) => ({ file, what: 'tests no file beside it' }))
  },
}

/** @type {import('../tidy.mjs').Rule} */
export const zigHeaders = {
  name: 'zig-headers',
  instead: 'begin the file with `//!`: what it does, its specification, what it must never do',
  find: (sources) =>
    sources
      .files(zigSources)
      .filter((file) => !sources.text(file).startsWith('//! '))
      .map((file) => ({ file, what: 'has no header' })),
}
