import type { EntranceField } from './entrance-form'

/** The API's rule: apps/api/src/rules/person.ts. */
export const newPasswordField: EntranceField = {
  label: 'New password',
  name: 'password',
  type: 'password',
  autoComplete: 'new-password',
  hint: 'At least 12 characters. It must not contain your name or e-mail address.',
}

export const newAccountFields: EntranceField[] = [
  { label: 'Your name', name: 'name', type: 'text', autoComplete: 'name' },
  newPasswordField,
]
