import { z } from 'zod'

export const uuid = z.uuid()
export const instant = z.iso.datetime()
export const count = z.number().int().nonnegative()
