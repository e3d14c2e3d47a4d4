import { AppError } from '../errors/app-error.ts'

/** Prisma tells a field that is absent from one that is undefined. */
export function definedOf<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]: Exclude<Fields[Name], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  if (entries.length === 0) throw new AppError('invalid', { public: 'Nothing to change.' })
  return Object.fromEntries(entries) as never
}
