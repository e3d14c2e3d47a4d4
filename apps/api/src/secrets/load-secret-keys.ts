import { exec } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { type SecretKeys, secretKeysFrom } from './secret-keys.ts'

const commandLimitMs = 30_000
const outputMax = 64 * 1024

interface KeySettings {
  SECRETS_KEY: string
  SECRETS_KEY_FILE: string
  /** A shell command that prints the keys, such as a client of a KMS. */
  SECRETS_KEY_COMMAND: string
  BETTER_AUTH_SECRET: string
}

/** Reads the keys from where the environment says. Throws one sentence that names the variable. */
export async function loadSecretKeys(settings: KeySettings): Promise<SecretKeys> {
  const { SECRETS_KEY: text, SECRETS_KEY_FILE: file, SECRETS_KEY_COMMAND: command } = settings
  const sources = { SECRETS_KEY: text, SECRETS_KEY_FILE: file, SECRETS_KEY_COMMAND: command }
  const names = Object.entries(sources).flatMap(([name, value]) => (value ? [name] : []))
  if (names.length > 1) throw new Error(`${names.join(' and ')} exclude each other: set one of them.`)
  const [name] = names
  if (name === undefined) return secretKeysFrom('', settings.BETTER_AUTH_SECRET)
  try {
    const given = file ? await readFile(file, 'utf8') : command ? await outputOf(command) : text
    if (given.trim() === '') throw new Error('there is no key')
    return secretKeysFrom(given, settings.BETTER_AUTH_SECRET)
  } catch (error) {
    throw new Error(`${name}: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** What it prints is a secret, so no error shows it. */
async function outputOf(command: string): Promise<string> {
  try {
    return (await promisify(exec)(command, { timeout: commandLimitMs, maxBuffer: outputMax })).stdout
  } catch (error) {
    const { killed, code, stderr } = error as { killed?: boolean; code?: number | string; stderr?: string }
    if (killed) throw new Error(`the command did not end within ${commandLimitMs / 1000} s`)
    throw new Error(
      `the command ended with ${code}: ${String(stderr ?? '')
        .trim()
        .slice(0, 500)}`,
    )
  }
}
