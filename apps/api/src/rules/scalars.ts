import { z } from 'zod'

export const uuid = z.uuid()
export const instant = z.iso.datetime()
export const count = z.number().int().nonnegative()

export const sha256Text = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[0-9a-f]{64}$/, 'A SHA-256 has 64 hexadecimal digits.')
