import { AppError } from '../errors/app-error.ts'

/** Prisma distinguishes an absent field from an undefined one. */
export function definedOf<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]: Exclude<Fields[Name], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  if (entries.length === 0) throw new AppError('invalid', { public: 'Nothing to change.' })
  return Object.fromEntries(entries) as never
}
