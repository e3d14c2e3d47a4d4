import { afterEach, describe, expect, test } from 'vitest'
import { limitWaits, RunningProcess } from '../lib/lab/running-process.ts'

const started: RunningProcess[] = []

/** Says this, and then nothing for as long as any test. */
async function silentAfter(words: string): Promise<RunningProcess> {
  const silent = new RunningProcess('sh', ['-c', `echo '${words}'; exec sleep 1000`])
  started.push(silent)
  await silent.waitFor(/\n/)
  return silent
}

afterEach(async () => {
  for (const process of started.splice(0)) await process.stop()
})

describe('a wait when the time of its test is nearly over', () => {
  test('fails with who was waited for, for what, and what each program said last', async () => {
    const machine = await silentAfter('Booting from ROM')
    machine.name = 'machine 7'
    await silentAfter('serving')
    limitWaits(50)
    const why = /^machine 7: .* no \/ready\/\n--- sh .*\n {4}serving\n--- machine 7\n {4}Booting from ROM\n/s
    await expect(machine.waitFor(/ready/)).rejects.toThrow(why)
    await expect(machine.ended).rejects.toThrow(/^machine 7: .* no end of it\n/)
  })

  test('goes on when the test is over, for whoever waits still', async () => {
    const silent = await silentAfter('here')
    limitWaits(50)
    const waiting = silent.waitFor(/ready/)
    limitWaits(undefined)
    await silent.stop()
    await expect(waiting).rejects.toThrow(/^sh .* ended before \/ready\/:\nhere\n$/)
  })
})
