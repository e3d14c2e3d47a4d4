import { cpSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { npmTools, pythonTools, run, runTool } from './tools.ts'

const tours = path.join(import.meta.dirname, 'tours')
const repository = path.join(import.meta.dirname, '../../..')

interface Result {
  code: number | null
  output: string
}

/** Makes the TypeScript client in the folder, and compiles the tour against it. */
export async function makeTypeScriptClient(folder: string, document: string): Promise<Result> {
  cpSync(path.join(tours, 'tour.ts'), path.join(folder, 'tour.ts'))
  symlinkSync(path.join(npmTools, 'node_modules'), path.join(folder, 'node_modules'))
  writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }')
  const made = await runTool('openapi-typescript', [document, '--output', path.join(folder, 'schema.d.ts')])
  if (made.code !== 0) return made
  const types = ['--typeRoots', path.join(repository, 'node_modules/@types'), '--types', 'node']
  const strict = ['--ignoreConfig', '--noEmit', '--strict', '--allowImportingTsExtensions', '--skipLibCheck', 'false']
  const target = ['--module', 'nodenext', '--target', 'es2024', ...types]
  const program = path.join(repository, 'node_modules/.bin/tsc')
  return run({ program, args: [...strict, ...target, path.join(folder, 'tour.ts')] })
}

/** Makes the Python client in the folder; a part of the description that it leaves out is a failure. */
export function makePythonClient(folder: string, document: string): Promise<Result> {
  const configuration = path.join(import.meta.dirname, 'python.yaml')
  const output = path.join(folder, 'bootfarm_client')
  const options = ['--meta', 'none', '--fail-on-warning', '--config', configuration]
  const args = ['-m', 'openapi_python_client', 'generate', '--path', document, '--output-path', output, ...options]
  return run({ program: 'python3', args, env: { PYTHONPATH: pythonTools } })
}

export function takeTour(language: 'typescript' | 'python', folder: string, env: Record<string, string>) {
  if (language === 'typescript') return run({ program: process.execPath, args: [path.join(folder, 'tour.ts')], env })
  const PYTHONPATH = `${folder}:${pythonTools}`
  return run({ program: 'python3', args: [path.join(tours, 'tour.py')], env: { ...env, PYTHONPATH } })
}
