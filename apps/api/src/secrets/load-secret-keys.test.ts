import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { loadSecretKeys } from './load-secret-keys.ts'
import { secretKeysFrom } from './secret-keys.ts'

const directory = mkdtempSync(path.join(os.tmpdir(), 'bootfarm-keys-'))
afterAll(() => rmSync(directory, { recursive: true }))

const none = {
  SECRETS_KEY: '',
  SECRETS_KEY_FILE: '',
  SECRETS_KEY_COMMAND: '',
  BETTER_AUTH_SECRET: 'the secret of an API, long enough',
}
const key = randomBytes(32).toString('base64')
const file = path.join(directory, 'keys')
writeFileSync(file, `${key}\n`)

test('keys come from the environment, a file or a command, and are the same', async () => {
  const expected = secretKeysFrom(key, none.BETTER_AUTH_SECRET)
  for (const source of [{ SECRETS_KEY: key }, { SECRETS_KEY_FILE: file }, { SECRETS_KEY_COMMAND: `cat '${file}'` }])
    expect(await loadSecretKeys({ ...none, ...source })).toEqual(expected)
  expect((await loadSecretKeys(none)).all).toHaveLength(1)
})

test('what is wrong is named, and no key is shown', async () => {
  const wrong: [Partial<typeof none>, RegExp][] = [
    [{ SECRETS_KEY: key, SECRETS_KEY_FILE: file }, /^SECRETS_KEY and SECRETS_KEY_FILE exclude each other/],
    [{ SECRETS_KEY_FILE: path.join(directory, 'absent') }, /^SECRETS_KEY_FILE: ENOENT/],
    [
      { SECRETS_KEY_COMMAND: 'echo "no such vault" >&2; exit 3' },
      /^SECRETS_KEY_COMMAND: .* ended with 3: no such vault$/,
    ],
    [{ SECRETS_KEY_COMMAND: 'true' }, /^SECRETS_KEY_COMMAND: there is no key$/],
    [{ SECRETS_KEY: `${key.slice(0, -4)}` }, /^SECRETS_KEY: key 1 is not 32 bytes in base64/],
  ]
  for (const [settings, sentence] of wrong) {
    const failure = await loadSecretKeys({ ...none, ...settings }).catch((error: Error) => error.message)
    expect(failure).toMatch(sentence)
    expect(failure).not.toContain(key.slice(0, 20))
  }
})
