import { existsSync } from 'node:fs'
import path from 'node:path'
import { inRoot } from '../../lib/paths.mjs'

/**
 * Relative links, and `paths/in/back.ticks` that look like files of this project.
 * @type {import('../tidy.mjs').Rule}
 */
export const documentPaths = {
  name: 'document-paths',
  instead: 'name one that exists',
  find: (sources) =>
    sources.files(/^(README\.md|(docs|packages|e2e)\/.*\.md)$/).flatMap((file) =>
      pathsIn(file, sources.text(file))
        .filter((target) => !existsSync(inRoot(target)))
        .map((target) => ({ file, what: `names ${target}, which does not exist` })),
    ),
}

function pathsIn(file, text) {
  const below = (target) => path.join(path.dirname(file), target)
  const all = (pattern) => [...text.matchAll(pattern)].map((match) => match[1])
  const inPackage = file.startsWith('packages/') ? all(/`((?:src|vectors)\/[\w./-]+\.\w+)`/g) : []
  return [
    ...all(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g).map(below),
    ...all(/`((?:apps|packages|edge|e2e|scripts|docs)\/[\w./-]+)`/g),
    ...inPackage.map(below),
  ]
}
