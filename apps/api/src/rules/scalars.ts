import { z } from 'zod'

export const uuid = z.uuid()
export const instant = z.iso.datetime()
export const count = z.number().int().nonnegative()

/** Levels of objects and arrays; no valid input has as many. */
export const inputDepthMax = 32

export const sha256Text = z
  .string()
  .trim()
  .toLowerCase()
  .regex(/^[0-9a-f]{64}$/, 'A SHA-256 has 64 hexadecimal digits.')
