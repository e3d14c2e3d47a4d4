import { AppError } from '../../errors/app-error.ts'

/** Deeper than any input; what is deeper is refused. */
const depthMax = 32

/**
 * PostgreSQL keeps no zero byte and no half of a surrogate pair, in no column and in no JSON: whatever has one is
 * refused before it reaches a service. Throws `invalid`.
 */
export function requireWholeTexts(input: unknown): void {
  const broken = findBroken(input, '', 0)
  if (broken === null) return
  const message = 'must hold neither zero bytes nor halves of characters'
  throw new AppError('invalid', {
    public: broken ? `${broken}: ${message}.` : `The input ${message}.`,
    fields: [{ in: 'input', field: broken, message }],
  })
}

/** Where; null: nowhere. */
function findBroken(value: unknown, path: string, depth: number): string | null {
  if (depth > depthMax) return path
  if (typeof value === 'string') return isWhole(value) ? null : path
  if (typeof value !== 'object' || value === null) return null
  for (const [name, inner] of Object.entries(value)) {
    // A name that is broken itself is not repeated.
    const broken = isWhole(name) ? findBroken(inner, path ? `${path}.${name}` : name, depth + 1) : path
    if (broken !== null) return broken
  }
  return null
}

function isWhole(text: string): boolean {
  return !text.includes('\0') && text.isWellFormed()
}
