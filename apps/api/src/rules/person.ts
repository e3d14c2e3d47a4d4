import { z } from 'zod'

/** A signed-in person, in any organization. */
export interface Person {
  userId: string
  name: string
  email: string
  sessionId: string
}

export const passwordLengthMin = 12
export const passwordLengthMax = 128
export const passwordRule = `At least ${passwordLengthMin} characters. It must not contain your name or e-mail address.`

const nameLengthMax = 80
const emailLengthMax = 254

/** One line of text that people type as a name: no control characters, because it appears in mails, logs and pages. */
export const nameInput = z
  .string()
  .trim()
  .min(1, 'is empty')
  .max(nameLengthMax, `has more than ${nameLengthMax} characters`)
  .refine((text) => !/\p{Cc}|\p{Cf}/u.test(text), 'contains characters that cannot be displayed')

/** In lower case, like all stored addresses. */
export const emailInput = z
  .string()
  .trim()
  .toLowerCase()
  .max(emailLengthMax, `has more than ${emailLengthMax} characters`)
  .pipe(z.email('is not an e-mail address'))

export const passwordInput = z
  .string()
  .min(passwordLengthMin, passwordRule)
  .max(passwordLengthMax, `has more than ${passwordLengthMax} characters`)

/** Returns a sentence with the problem; null if there is none. */
export function passwordProblem(password: string, owner: { name: string; email: string }): string | null {
  const shape = passwordInput.safeParse(password)
  if (!shape.success) return shape.error.issues[0]?.message ?? passwordRule
  const text = password.toLowerCase()
  const local = owner.email.toLowerCase().split('@')[0] ?? ''
  const own = [owner.email.toLowerCase(), local, ...owner.name.toLowerCase().split(/\s+/)]
  return own.some((part) => part.length >= ownPartLengthMin && text.includes(part)) ? passwordRule : null
}

/** Shorter parts of a name are in many passwords by chance. */
const ownPartLengthMin = 4
