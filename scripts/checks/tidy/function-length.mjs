import { scriptSources, zigSources } from './sources.mjs'

const zigMax = 70
const scriptMax = 60
/** A function that makes a type is as long as the type. */
const zigHeader = /^(\s*)(?:pub |export |inline |noinline )*fn (\w+)(?!.*\) type \{)/
const scriptHeaders = [
  /^(\s*)(?:export )?(?:default )?(?:async )?function\*? ?(\w*)/,
  /^(\s*)(?:export )?const (\w+)\b.* = (?:async )?(?:\(.*\)|\w+)(?:: .*)? => \{$/,
  /^(\s*)(?:export )?const (\w+)\b.* = (?:async )?\($/,
  /^( +)(?:(?:static|async|get|set|private|protected) |\*)*(?!(?:if|for|while|switch|catch|return)\b)(#?\w+)\((?!.*=>).*\)(?:: .+)? \{$/,
]

/**
 * Both formatters put a function's last brace below the first letter of its first line.
 * @type {import('../tidy.mjs').Rule}
 */
export const functionLength = {
  name: 'function-length',
  instead: `at most ${zigMax} lines in Zig and ${scriptMax} elsewhere; give each of its steps a function with a name`,
  find(sources) {
    const found = []
    const look = (file, headers, max) => {
      for (const { name, line, length } of functionsIn(sources.lines(file), headers))
        if (length > max) found.push({ file, line, what: `function ${name} has ${length} lines` })
    }
    for (const file of sources.files(zigSources)) look(file, [zigHeader], zigMax)
    for (const file of sources.files(scriptSources)) look(file, scriptHeaders, scriptMax)
    return found
  },
}

/** @returns {{ name: string, line: number, length: number, body: string[] }[]} `line` counts from 1 */
export function functionsIn(lines, headers = [zigHeader]) {
  const found = []
  for (const [index, line] of lines.entries()) {
    const match = headers.map((header) => header.exec(line)).find(Boolean)
    if (!match) continue
    const [, indentation, name] = match
    const end = lines.findIndex((one, at) => at >= index && endsAt(one, indentation, at === index))
    if (end < 0) continue
    found.push({ name, line: index + 1, length: end - index + 1, body: lines.slice(index, end + 1) })
  }
  return found
}

function endsAt(line, indentation, isHeader) {
  if (isHeader) return /[};]$/.test(line) && !/\{$/.test(line)
  return line.startsWith(`${indentation}}`) && /^\}[)\],;]*$/.test(line.slice(indentation.length))
}
