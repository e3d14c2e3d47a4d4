import { z } from 'zod'

export const doneView = z.object({ ok: z.literal(true) })

export const done = { ok: true } as const
