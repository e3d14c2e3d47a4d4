import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { z } from 'zod'

const passwordSizeBytes = 12
const demoEmail = 'demo@bootfarm.test'
const signIn = z.object({ email: z.string(), password: z.string() })
export type DemoSignIn = z.infer<typeof signIn>

/** The demo's sign-in of this installation: read from its file, or made with a password of its own. */
export function ensureSignInFile(directory: string): { signIn: DemoSignIn; isNew: boolean } {
  const file = path.join(directory, 'demo-sign-in.json')
  if (existsSync(file)) return { signIn: signIn.parse(JSON.parse(readFileSync(file, 'utf8'))), isNew: false }
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  const made = { email: demoEmail, password: randomBytes(passwordSizeBytes).toString('base64url') }
  writeFileSync(`${file}.partial`, `${JSON.stringify(made)}\n`, { mode: 0o600 })
  renameSync(`${file}.partial`, file)
  return { signIn: made, isNew: true }
}
