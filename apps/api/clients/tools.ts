import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { openApiDocument } from '../src/http/rest/openapi/document.ts'

/** scripts/lib/toolchain.mjs installs them: these tests run as a separate layer. */
export const npmTools = process.env.BOOTFARM_API_TOOLS ?? ''
export const pythonTools = process.env.BOOTFARM_API_PYTHON_TOOLS ?? ''

interface Run {
  program: string
  args: string[]
  env?: Record<string, string>
}

/** Runs a program to its end. None of them sends telemetry or looks for a newer version of itself. */
export function run({ program, args, env = {} }: Run): Promise<{ code: number | null; output: string }> {
  return new Promise((resolve, reject) => {
    const quiet = { CI: 'true', REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }
    const child = spawn(program, args, { env: { ...process.env, ...quiet, ...env } })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString('utf8')
      })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, output }))
  })
}

/** Runs one of the npm tools. */
export function runTool(name: string, args: string[]): Promise<{ code: number | null; output: string }> {
  return run({ program: path.join(npmTools, 'node_modules/.bin', name), args })
}

/** A folder with the API's description, which is removed by `remove`. */
export function writeDocument(): { folder: string; file: string; remove: () => void } {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-clients-'))
  const file = path.join(folder, 'openapi.json')
  writeFileSync(file, JSON.stringify(openApiDocument()))
  return { folder, file, remove: () => rmSync(folder, { recursive: true }) }
}
