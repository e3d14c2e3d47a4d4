import type { z } from 'zod'

/**
 * The filters of an address. A value that the schema does not know counts as not set, so that an old or mistyped link
 * never breaks a page.
 */
export function readFilters<Shape extends Record<string, z.ZodType<string | undefined>>>(
  shape: Shape,
  parameters: { get(name: string): string | null },
): { [Name in keyof Shape]?: z.infer<Shape[Name]> } {
  const filters: Record<string, string> = {}
  for (const [name, schema] of Object.entries(shape)) {
    const parsed = schema.safeParse(parameters.get(name) ?? undefined)
    if (parsed.success && parsed.data) filters[name] = parsed.data
  }
  return filters as { [Name in keyof Shape]?: z.infer<Shape[Name]> }
}
