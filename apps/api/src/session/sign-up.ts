import type { z } from 'zod'
import type { OutsideContext } from '../context/service-context.ts'
import { AppError } from '../errors/app-error.ts'
import { requireSelfService } from '../organization/public.ts'
import { done, type doneView } from '../rules/changed-object.ts'
import { alreadyKnownMail, type Mail, type SendMail, signUpMail } from '../rules/mail.ts'
import { hashToken, makeToken } from '../rules/one-time-token.ts'
import { emailInput, passwordProblem } from '../rules/person.ts'
import type { TenancySettings } from '../rules/tenancy.ts'
import { createAccount } from './create-account.ts'
import type { completeSignUpInput, signUpAsked, signUpOfferView } from './schema.ts'
import { takeAttempt } from './take-attempt.ts'

const hourMs = 3_600_000
const linkValidMs = hourMs
/** Mails to one address: further requests get the same answer, and the address no mail. */
const mailsPerHourMax = 3
const asksPerAddressMax = 100
const asksPerHourMax = 2_000

type SignUpContext = OutsideContext & {
  tenancy: TenancySettings
  address: string | null
  webUrl: string
  sendMail: SendMail
}

/**
 * Mails a link to the address. The answer and its time are the same whether the address has an account or not; nothing
 * is created before the link is opened. Throws `sign_up_closed`, `invalid` for an invalid address, `rate_limited`.
 */
export async function askToSignUp(
  context: SignUpContext,
  { email: given }: { email: string },
): Promise<z.infer<typeof signUpAsked>> {
  requireSelfService(context)
  const parsed = emailInput.safeParse(given)
  if (!parsed.success) throw new AppError('invalid', { public: 'Enter a valid e-mail address.' })
  const email = parsed.data
  const windows = [
    { key: 'sign-up', countMax: asksPerHourMax },
    { key: `sign-up from ${context.address ?? 'nowhere'}`, countMax: asksPerAddressMax },
  ]
  for (const { key, countMax } of windows)
    if (!(await takeAttempt(context, { key, countMax, windowMs: hourMs }))) throw new AppError('rate_limited')
  const key = `sign-up of ${hashToken(email)}`
  const isMailed = await takeAttempt(context, { key, countMax: mailsPerHourMax, windowMs: hourMs })
  const mail = await prepareMail(context, email)
  // Not awaited: the time of a mail server reveals nothing about the address.
  if (isMailed) void context.sendMail(mail)
  return { asked: true }
}

async function prepareMail({ db, clock, webUrl }: SignUpContext, email: string): Promise<Mail> {
  const { token, tokenHash } = makeToken('signUp')
  const now = clock()
  const known = await db.user.findUnique({ where: { email }, select: { id: true } })
  await db.signUpLink.deleteMany({ where: { expiresAt: { lte: now } } })
  // Also for a known address: the same steps take the same time. That link opens nothing.
  await db.signUpLink.create({
    data: { email, tokenHash, createdAt: now, expiresAt: new Date(now.getTime() + linkValidMs) },
    select: { id: true },
  })
  if (known) return alreadyKnownMail({ email, url: new URL('/sign-in', webUrl).toString() })
  return signUpMail({ email, url: new URL(`/sign-up/${token}`, webUrl).toString() })
}

/** Throws `sign_up_closed`, `not_found`, `conflict`. */
export async function getSignUp(
  context: SignUpContext,
  { token }: { token: string },
): Promise<z.infer<typeof signUpOfferView>> {
  requireSelfService(context)
  return { email: (await findLink(context, token)).email }
}

/**
 * Makes the account; its link, and all others of the address, end. Throws as `getSignUp`, and `invalid` for the
 * password.
 */
export async function completeSignUp(
  context: SignUpContext & { hashPassword: (password: string) => Promise<string> },
  { token, name, password }: z.output<typeof completeSignUpInput>,
): Promise<z.infer<typeof doneView>> {
  requireSelfService(context)
  const { email } = await findLink(context, token)
  const problem = passwordProblem(password, { name, email })
  if (problem) throw new AppError('invalid', { public: problem })
  const passwordHash = await context.hashPassword(password)
  await context.db.$transaction(async (transaction) => {
    // If two open it at once, one finds it.
    const { count } = await transaction.signUpLink.deleteMany({ where: { tokenHash: hashToken(token) } })
    const known = await transaction.user.findUnique({ where: { email }, select: { id: true } })
    if (count === 0 || known) throw usedUp()
    await transaction.signUpLink.deleteMany({ where: { email } })
    await createAccount({ db: transaction, clock: context.clock }, { name, email, passwordHash })
  })
  return done
}

async function findLink({ db, clock }: SignUpContext, token: string): Promise<{ email: string }> {
  const link = await db.signUpLink.findUnique({
    where: { tokenHash: hashToken(token) },
    select: { email: true, expiresAt: true },
  })
  if (!link || link.expiresAt <= clock())
    throw new AppError('not_found', { public: 'This link is unknown or has expired. Sign up again.' })
  const known = await db.user.findUnique({ where: { email: link.email }, select: { id: true } })
  if (known) throw usedUp()
  return { email: link.email }
}

function usedUp(): AppError {
  return new AppError('conflict', { public: 'This address already has an account. Sign in.' })
}
