import { z } from 'zod'

/** From least to most: each role may do what those before it may. */
export const roles = ['viewer', 'operator', 'admin', 'owner'] as const
export const roleView = z.enum(roles)
export type Role = (typeof roles)[number]

/** Who calls: a signed-in person in one organization. */
export interface Actor {
  userId: string
  userName: string
  userEmail: string
  organizationId: string
  organizationName: string
  role: Role
}

export function roleAllows(role: Role, minimum: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(minimum)
}
