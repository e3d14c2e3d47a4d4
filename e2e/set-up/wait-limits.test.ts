import { afterEach, describe, expect, test } from 'vitest'
import { limitWaits, RunningProcess } from '../lib/lab/running-process.ts'

const started: RunningProcess[] = []

/** Prints this, and then nothing for as long as any test lasts. */
async function silentAfter(words: string): Promise<RunningProcess> {
  const silent = new RunningProcess('sh', ['-c', `echo '${words}'; exec sleep 1000`])
  started.push(silent)
  await silent.waitFor(/\n/)
  return silent
}

afterEach(async () => {
  for (const process of started.splice(0)) await process.stop()
})

describe("a wait when its test's time is nearly over", () => {
  test("fails with the program, what was waited for, and each program's last output", async () => {
    const machine = await silentAfter('Booting from ROM')
    machine.name = 'machine 7'
    await silentAfter('serving')
    limitWaits(50)
    const why = /^machine 7: .* no \/ready\/\n--- sh .*\n {4}serving\n--- machine 7\n {4}Booting from ROM\n/s
    await expect(machine.waitFor(/ready/)).rejects.toThrow(why)
    await expect(machine.ended).rejects.toThrow(/^machine 7: .* no end of it\n/)
  })

  test('continues after the test, for waits that have not ended', async () => {
    const silent = await silentAfter('here')
    limitWaits(50)
    const waiting = silent.waitFor(/ready/)
    limitWaits(undefined)
    await silent.stop()
    await expect(waiting).rejects.toThrow(/^sh .* ended before \/ready\/:\nhere\n$/)
  })
})
