import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { openApiDocument } from '../src/http/rest/openapi/document.ts'
import { runProgram } from '../test/run-program.ts'

/** scripts/lib/toolchain.mjs installs them: these tests run as a separate layer. */
export const npmTools = process.env.BOOTFARM_API_TOOLS ?? ''
export const pythonTools = process.env.BOOTFARM_API_PYTHON_TOOLS ?? ''

/** None of the tools sends telemetry or looks for a newer version of itself. */
const quiet = { CI: 'true', REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' }

/** Runs a program to its end. */
export function run({ env, ...what }: Parameters<typeof runProgram>[0]) {
  return runProgram({ ...what, env: { ...quiet, ...env } })
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
