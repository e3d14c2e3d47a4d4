import type { Auth } from './auth.ts'

/** Null for an e-mail address without an account. */
export async function findUserId(auth: Auth, email: string): Promise<string | null> {
  const { internalAdapter } = await auth.$context
  return (await internalAdapter.findUserByEmail(email))?.user.id ?? null
}

interface NewUser {
  name: string
  email: string
  password: string
}

/** Makes the person, or gives the existing one this password. Returns the id. */
export async function ensureUser(auth: Auth, { name, email, password }: NewUser): Promise<string> {
  const context = await auth.$context
  const hash = await context.password.hash(password)
  const known = await context.internalAdapter.findUserByEmail(email)
  if (known) {
    await context.internalAdapter.updatePassword(known.user.id, hash)
    return known.user.id
  }
  const user = await context.internalAdapter.createUser(
    { name, email, emailVerified: true },
    { method: 'email-password' },
  )
  await context.internalAdapter.linkAccount({
    userId: user.id,
    providerId: 'credential',
    accountId: user.id,
    password: hash,
  })
  return user.id
}
