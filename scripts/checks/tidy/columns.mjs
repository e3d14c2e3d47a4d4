import { scriptSources, zigSources } from './sources.mjs'

const zigMax = 100
const otherMax = 120
/** Addresses may be wider, because they cannot be broken. */
const address = /https?:\/\/\S+/g
/** Texts of a program stay whole, so that a search finds them. */
const literals = /'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|\/(?:\\.|[^/\\\s])(?:\\.|[^/\\])*\/[a-z]*/g

/** @type {import('../tidy.mjs').Rule} */
export const columns = {
  name: 'columns',
  instead: `at most ${zigMax} in Zig and ${otherMax} elsewhere; break the line (addresses, tables and texts of a program may be longer)`,
  find(sources) {
    const found = []
    const look = (file, max, isExempt) => {
      for (const [index, line] of sources.lines(file).entries()) {
        const isTooWide = line.length > max && line.replace(address, '').length > max
        if (isExempt(line, isTooWide) || !isTooWide) continue
        found.push({ file, line: index + 1, what: `${line.length} columns` })
      }
    }
    for (const file of sources.files(zigSources)) look(file, zigMax, isZigText)
    for (const file of sources.files(scriptSources)) look(file, otherMax, scriptTexts())
    for (const file of sources.files(/^(README\.md|docs\/.*\.md|packages\/.*\.md|e2e\/.*\.md)$/))
      look(file, otherMax, markdownTexts())
    return found
  },
}

/** Lines of a multi-line string, a string alone on its line, and the name of a test. */
const isZigText = (line) => /^\s*(\\\\|"|test ")/.test(line)

/** Lines within a template, and those whose code is short enough. */
function scriptTexts() {
  let isInTemplate = false
  return (line, isTooWide) => {
    const wasInTemplate = isInTemplate
    const isComment = !wasInTemplate && /^\s*(\/\/|\/?\*)/.test(line)
    if (!isComment && (line.match(/(?<!\\)`/g)?.length ?? 0) % 2 === 1) isInTemplate = !isInTemplate
    if (!isTooWide || isComment) return false
    return wasInTemplate || isInTemplate || line.replace(literals, "''").length <= otherMax
  }
}

/** Tables, and programs' input and output. */
function markdownTexts() {
  let isInFence = false
  return (line) => {
    if (line.startsWith('```')) isInFence = !isInFence
    return isInFence || /^(\||( {4}|\t))/.test(line)
  }
}
