import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'

/** The part of a process that a failure message needs. */
export interface Speaker {
  name: string
  output: string
}

const lineCount = 30
/** For programs that are not under test. */
const lineCountOfOthers = 5
const lineSize = 160
const nameSize = 80

/** Names a program and its arguments, without the namespace that it runs in. */
export function nameOf(command: string, args: string[]): string {
  const words = [command, ...args]
  const own = command === 'ip' && args[0] === 'netns' && args[1] === 'exec' ? words.slice(4) : words
  return [path.basename(own[0] ?? ''), ...own.slice(1)].join(' ').slice(0, nameSize)
}

/**
 * Explains why a test failed while it waited for `waited`, with the last output of each of `all`. The end of a log is
 * read first and may be all that is left, so the reason stands at both ends.
 */
export function lastWords(waited: Speaker, what: string, all: Iterable<Speaker>): string {
  const reason = `${waited.name}: the test's time is nearly over, and there is no ${what}`
  const others = [...all].filter((speaker) => speaker !== waited)
  return [reason, ...others.map(lastLines), lastLines(waited), reason].join('\n')
}

/** Returns the last lines of a process's output, under its name. */
export function lastLines({ name, output }: Speaker): string {
  const isTested = /^(machine|bootfarm-)/.test(name)
  const lines = stripVTControlCharacters(output)
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== '')
    .slice(isTested ? -lineCount : -lineCountOfOthers)
  return [`--- ${name}`, ...lines.map((line) => `    ${line.slice(0, lineSize)}`)].join('\n')
}
