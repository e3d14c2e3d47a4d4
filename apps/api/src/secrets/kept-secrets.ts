import { AppError } from '../errors/app-error.ts'
import { openSecret, type SecretKeys, SecretNotOpened, type SecretPlace, sealSecret } from './secret-keys.ts'

let keys: SecretKeys | null = null

/** Each program calls this once at its start, before it reads or writes a secret. */
export function setSecretKeys(all: SecretKeys): void {
  keys = all
}

/** Throws if the program has set no keys, so that no secret is ever kept in clear. */
export function secretKeys(): SecretKeys {
  if (!keys) throw new Error('there are no keys for secrets: call setSecretKeys(keys) at the start of the program')
  return keys
}

/** The form in which a secret is kept in the database. */
export function kept(place: SecretPlace, secret: Uint8Array): Uint8Array<ArrayBuffer> {
  return sealSecret(secretKeys(), place, secret)
}

/** Throws `unavailable` where the key is missing or the row was tampered with; the log says which. */
export function opened(place: SecretPlace, secret: Uint8Array): Uint8Array<ArrayBuffer> {
  try {
    return openSecret(secretKeys(), place, secret)
  } catch (error) {
    if (!(error instanceof SecretNotOpened)) throw error
    throw new AppError('unavailable', {
      internal: error.message,
      public: 'The control plane cannot open a secret that it keeps. Its log says which key is missing.',
    })
  }
}
