import { z } from 'zod'

/** Field types of the messages between edge and API. */

export const uuid = z.uuid()
export const base64 = (bytes: number) =>
  z.base64().refine((text) => Buffer.from(text, 'base64').length === bytes, `must be ${bytes} bytes in base64`)
/** JSON numbers are exact up to 2^53 - 1. */
export const count = z.number().int().nonnegative().max(Number.MAX_SAFE_INTEGER)
/** Milliseconds since 1970, up to the last instant that JavaScript knows. */
export const unixMs = count.max(8_640_000_000_000_000)
/** Text that a device or an agent chose: printable ASCII, never trusted. */
export const untrustedText = z
  .string()
  .max(64)
  .regex(/^[\x20-\x7e]*$/)
export const macAddress = z.string().regex(/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/, 'lower-case, colon-separated')
