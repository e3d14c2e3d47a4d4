import { spawn } from 'node:child_process'
import { UserError } from './fail.mjs'
import { countProcessorTime, processesBelow } from './processor-time.mjs'

const outputTailSize = 16_000

/** Keeps tools from phoning home. */
export const quietEnv = {
  NEXT_TELEMETRY_DISABLED: '1',
  TURBO_TELEMETRY_DISABLED: '1',
  DO_NOT_TRACK: '1',
  CHECKPOINT_DISABLE: '1',
  PRISMA_HIDE_UPDATE_MESSAGE: '1',
}

/**
 * @typedef {object} CaptureOptions
 * @property {string} [cwd]
 * @property {Record<string, string>} [env] beside this process's own
 * @property {string} [input]
 * @property {(text: string) => void} [onOutput]
 * @property {AbortSignal} [signal]
 * @property {number} [timeoutMs]
 */

/**
 * Runs a command to its end and collects its output. One that is not over after `timeoutMs` is killed, with all that it
 * started, and the output says so. One with a `signal` has its own process group, and ends with all of that group when
 * the signal is raised.
 * @param {string} command
 * @param {string[]} args
 * @param {CaptureOptions} [options]
 * @returns {Promise<{ code: number | null, output: string }>} output: stdout and stderr as they came
 */
export function capture(command, args, { cwd, env, input, onOutput, signal, timeoutMs = 1_800_000 } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      // Captured output is shown as it is, and read by programs.
      env: { ...process.env, ...quietEnv, NO_COLOR: '1', FORCE_COLOR: '0', ...env },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      detached: signal !== undefined,
    })
    signal?.addEventListener('abort', () => child.exitCode === null && process.kill(-child.pid, 'SIGTERM'))
    countProcessorTime(child)
    if (input !== undefined) child.stdin.end(input)
    const parts = []
    const timer = setTimeout(() => {
      for (const pid of [child.pid, ...processesBelow(child.pid)]) killIfThere(pid)
      parts.push(`\nKilled: ${command} was not over after ${timeoutMs / 1000} s.\n`)
    }, timeoutMs)
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8')
      stream.on('data', (text) => {
        parts.push(text)
        onOutput?.(text)
      })
    }
    child.once('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
    child.once('close', (code) => {
      clearTimeout(timer)
      resolve({ code, output: parts.join('') })
    })
  })
}

function killIfThere(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** Runs a command that must succeed; otherwise throws a UserError with its purpose and the end of its output. */
export async function must(what, command, args, options) {
  let result
  try {
    result = await capture(command, args, options)
  } catch (error) {
    throw new UserError(`${what} failed: ${command} cannot be started (${error.code ?? error.message}).`)
  }
  if (result.code !== 0) {
    throw new UserError(`${what} failed (exit code ${result.code}):\n${result.output.slice(-outputTailSize)}`)
  }
  return result.output
}
