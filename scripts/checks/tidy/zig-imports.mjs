import path from 'node:path'
import { isTest, zigSources } from './sources.mjs'

const importPattern = /@import\("([^"]+\.zig)"\)/g

/**
 * Files of a module that import each other, however far around. A module's root and a folder's index import all that is
 * below them, and tests import what they test: these do not count.
 * @type {import('../tidy.mjs').Rule}
 */
export const zigCycles = {
  name: 'zig-cycles',
  instead: 'move what both need into a file that imports neither',
  find(sources) {
    const files = sources.files(zigSources).filter((file) => !isTest(file) && !isIndex(file))
    const known = new Set(files)
    const imports = new Map(files.map((file) => [file, importsOf(sources, file).filter((target) => known.has(target))]))
    return circles(imports).map((circle) => ({
      file: circle[0],
      what: `imports itself by way of ${
        circle
          .slice(1)
          .map((file) => path.basename(file))
          .join(', ') || 'itself'
      }`,
      count: circle.length,
    }))
  },
}

/** `core/core.zig`, `core/boot/boot.zig`, or `core/boot.zig` beside `core/boot/`. */
function isIndex(file) {
  const name = path.basename(file, '.zig')
  return path.basename(path.dirname(file)) === name
}

function importsOf(sources, file) {
  const text = sources.text(file).replace(/^\s*\/\/.*$/gm, '')
  return [...text.matchAll(importPattern)].map((match) => path.join(path.dirname(file), match[1]))
}

/** Strongly connected components of more than one file (Tarjan), each in the order of names. */
function circles(imports) {
  const state = { index: 0, order: new Map(), low: new Map(), stack: [], found: [] }
  const visit = (file) => {
    state.order.set(file, state.index)
    state.low.set(file, state.index++)
    state.stack.push(file)
    for (const target of imports.get(file)) {
      if (!state.order.has(target)) visit(target)
      if (state.stack.includes(target)) state.low.set(file, Math.min(state.low.get(file), state.low.get(target)))
    }
    if (state.low.get(file) !== state.order.get(file)) return
    const circle = state.stack.splice(state.stack.indexOf(file))
    if (circle.length > 1) state.found.push(circle.toSorted())
  }
  for (const file of imports.keys()) if (!state.order.has(file)) visit(file)
  return state.found
}

const publicName = /^\s*pub (?:inline |noinline |extern |threadlocal )*(?:fn|const|var) (\w+)/gm
/** Names that the language, the standard library or `zig build` looks for. */
const foreseen = /^(main|build|panic|std_options|std_options_\w+|format|jsonStringify|jsonParse|_start)$/

/** @type {import('../tidy.mjs').Rule} */
export const zigUnused = {
  name: 'zig-unused',
  instead: 'take `pub` away where its own file uses it, else the whole of it',
  find(sources) {
    const files = sources.files(zigSources)
    const users = new Map()
    for (const file of files)
      for (const word of new Set(withoutComments(sources.text(file)).match(/\b[A-Za-z_]\w*\b/g)))
        users.set(word, (users.get(word) ?? 0) + 1)
    return files.flatMap((file) =>
      [...sources.text(file).matchAll(publicName)]
        .map(([, name]) => name)
        .filter((name) => users.get(name) === 1 && !foreseen.test(name) && !isTypeOfItsFile(name, sources.text(file)))
        .map((name) => ({ file, what: `no other file uses ${name}, which is public` })),
    )
  },
}

/** A type in a public signature or field is used by callers and readers without its name. */
const isTypeOfItsFile = (name, text) => /^[A-Z]/.test(name) && withoutComments(text).split(name).length > 2
const withoutComments = (text) => text.replace(/^\s*\/\/.*$/gm, '')
