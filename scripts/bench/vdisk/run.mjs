import { UserError } from '../../lib/fail.mjs'
import { WatchedProcess } from '../watched-process.mjs'

/** Runs a program to its end; returns its output, or throws with it when the exit code is not 0. */
export async function runToEnd(command, args) {
  const running = new WatchedProcess({ command, args })
  const code = await running.ended
  if (code !== 0) throw new UserError(`${command} ${args[0]} failed:\n${running.output.slice(-3000)}`)
  return running.output
}

/** Returns the last line of JSON that a program printed. */
export function lastJson(output) {
  const line = output.split('\n').findLast((one) => one.startsWith('{') && one.endsWith('}'))
  if (!line) throw new UserError(`a program printed no result:\n${output.slice(-3000)}`)
  return JSON.parse(line)
}
