import { existsSync } from 'node:fs'
import path from 'node:path'
import { expect } from 'vitest'
import { RunningProcess } from '../lab/running-process.ts'

/** None of these tests gets as far as listening; the ports just must not be those of a running demo. */
export const freePortArguments = [
  '--web-port',
  '32117',
  '--api-port',
  '32118',
  '--pg-port',
  '32119',
  '--edge-ports',
  '32120,32121,32122,32123,32124,32125,32126',
]

/**
 * Expects starts with the data directory `data` to end with exit code 1 and one sentence, with nothing started or
 * created.
 */
export function refusals(data: string) {
  return async (args: string[], env: Record<string, string> = {}, command = process.execPath): Promise<string> => {
    const started = new RunningProcess(command, [...args, '--data', data], env)
    expect(await started.ended, started.output).toBe(1)
    const sentences = started.output.split('\n').filter((line) => line.startsWith('bootfarm: '))
    expect(sentences, started.output).toHaveLength(1)
    expect(started.output).not.toMatch(/\n\s+at /)
    expect(existsSync(path.join(data, 'postgres'))).toBe(false)
    return sentences[0] ?? ''
  }
}
