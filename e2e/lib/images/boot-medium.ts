import { execFileSync, spawnSync } from 'node:child_process'
import { edgeProgram } from '../lab/programs.ts'

/** Builds a boot medium as a user would, and returns its file; `args` are further options of the command. */
export function buildBootMedium(out: string, edges: string[], args: string[] = []): string {
  const named = edges.flatMap((edge) => ['--edge', edge])
  execFileSync(edgeProgram, ['boot-media', 'build', ...named, '--out', out, ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  return out
}

/** Returns the command's message when it builds nothing. */
export function refusedBootMedium(args: string[]): { code: number | null; said: string } {
  const { status, stderr } = spawnSync(edgeProgram, ['boot-media', 'build', ...args], { encoding: 'utf8' })
  return { code: status, said: stderr }
}
