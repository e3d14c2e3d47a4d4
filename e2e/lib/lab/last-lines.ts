import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'

/** What is needed of a process for the message of a failure. */
export interface Speaker {
  name: string
  output: string
}

const lineCount = 30
/** Of programs that are not under test. */
const lineCountOfOthers = 5
const lineSize = 160
const nameSize = 80

/** A program and its arguments, without the namespace that it runs in. */
export function nameOf(command: string, args: string[]): string {
  const words = [command, ...args]
  const own = command === 'ip' && args[0] === 'netns' && args[1] === 'exec' ? words.slice(4) : words
  return [path.basename(own[0] ?? ''), ...own.slice(1)].join(' ').slice(0, nameSize)
}

/** Why a test failed that waited for something of `waited`, and what each of `all` said last. The end of a log is read first, and may
 * be all that there is: so the reason stands at both ends. */
export function lastWords(waited: Speaker, what: string, all: Iterable<Speaker>): string {
  const reason = `${waited.name}: the test's time is nearly over, and there is no ${what}`
  const others = [...all].filter((speaker) => speaker !== waited)
  return [reason, ...others.map(lastLines), lastLines(waited), reason].join('\n')
}

/** The last lines of a process's output, under its name. */
export function lastLines({ name, output }: Speaker): string {
  const isTested = /^(machine|bootfarm-)/.test(name)
  const lines = stripVTControlCharacters(output)
    .split(/[\r\n]+/)
    .filter((line) => line.trim() !== '')
    .slice(isTested ? -lineCount : -lineCountOfOthers)
  return [`--- ${name}`, ...lines.map((line) => `    ${line.slice(0, lineSize)}`)].join('\n')
}
