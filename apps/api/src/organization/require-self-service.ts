import { AppError } from '../errors/app-error.ts'
import type { TenancySettings } from '../rules/tenancy.ts'

/** Throws `sign_up_closed`. */
export function requireSelfService({ tenancy }: { tenancy: TenancySettings }): void {
  if (!tenancy.isSelfService) throw new AppError('sign_up_closed')
}
