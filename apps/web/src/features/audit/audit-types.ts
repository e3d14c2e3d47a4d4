import type { RouterOutputs } from '@bootfarm/api/router'

export type AuditEntry = RouterOutputs['audit']['list']['items'][number]
