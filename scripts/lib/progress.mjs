/** Progress of long steps: one line when a step begins, one with its time when it ends. */

const startedAt = performance.now()

export function say(text) {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)
  process.stdout.write(`${seconds} s  ${text}\n`)
}

/** Runs one named step; prints its time when it took longer than a moment. */
export async function step(title, work) {
  const begin = performance.now()
  say(title)
  const result = await work()
  const seconds = (performance.now() - begin) / 1000
  if (seconds > 2) say(`  done: ${title} (${seconds.toFixed(1)} s)`)
  return result
}
