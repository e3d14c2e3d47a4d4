import { z } from 'zod'
import { roleView } from './actor.ts'

export const sessionView = z.object({
  user: z.object({ id: z.uuid(), name: z.string(), email: z.string() }),
  organization: z.object({ id: z.uuid(), name: z.string() }),
  role: roleView,
})
