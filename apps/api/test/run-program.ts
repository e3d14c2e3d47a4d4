import { spawn } from 'node:child_process'

interface Run {
  program: string
  args: string[]
  /** Beside this process's own. */
  env?: Record<string, string>
  cwd?: string
}

/** Runs a program to its end. Null: a signal ended it. */
export function runProgram({ program, args, env, cwd }: Run): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: { ...process.env, ...env }, ...(cwd ? { cwd } : {}) })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString('utf8')
      })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}
