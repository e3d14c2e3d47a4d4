import { z } from 'zod'

export const roles = ['owner', 'admin', 'operator', 'image_manager', 'auditor', 'viewer'] as const
export const roleView = z.enum(roles)
export type Role = (typeof roles)[number]

const everybody = roles
const admins = ['owner', 'admin'] as const
const operators = ['owner', 'admin', 'operator'] as const
const imageManagers = ['owner', 'admin', 'image_manager'] as const

interface PermissionRow {
  roles: readonly Role[]
  /** The permission, as the end of "may …". */
  allows: string
  /**
   * Holds also for what only leads to the scope, or serves it: the site of one's collection, the vDisks of its farm.
   */
  upwards?: true
}

/**
 * All permissions, and the roles that have them. A procedure names one of these in its policy; a permission that no row
 * gives, nobody has. A role is granted for the organization, a farm, a site or a collection, and applies to everything
 * below.
 */
export const permissions = {
  'organization.read': row(everybody, 'see the organization and your own roles in it', { upwards: true }),
  'organization.change': row(admins, 'change the organization, its keys and its settings'),
  'organization.delete': row(['owner'], 'delete the organization, and cancel the deletion within the grace period'),
  'member.read': row(['owner', 'admin', 'auditor'], 'see members and their roles'),
  'member.change': row(admins, 'invite and remove members, and grant and remove roles up to your own'),
  'audit.read': row(['owner', 'admin', 'auditor'], 'search and export the audit log'),
  'api_key.read': row(['owner', 'admin', 'auditor'], 'see API keys, never their secrets'),
  'api_key.change': row(admins, 'create and revoke API keys'),
  'webhook.read': row(['owner', 'admin', 'auditor'], 'see webhooks and their deliveries'),
  'webhook.change': row(admins, 'create, change and delete webhooks'),
  'event.read': row(everybody, 'see events: failed boots, silent edges, ended runs, promoted versions and others'),
  'farm.read': row(everybody, 'see farms and their figures', { upwards: true }),
  'farm.change': row(admins, 'create, change, delete and restore farms'),
  'site.read': row(everybody, 'see sites', { upwards: true }),
  'site.change': row(admins, 'create, change, move, delete and restore sites'),
  'edge.read': row(everybody, 'see edges and their state', { upwards: true }),
  'edge.drain': row(operators, 'drain edges and resume new boots'),
  'edge.change': row(admins, 'add, change and revoke edges, and rotate their keys'),
  'rollout.read': row(everybody, 'see how releases reach the edges of a farm'),
  'rollout.change': row(admins, 'start, pause, resume and cancel rollouts of releases'),
  'store.read': row(everybody, 'see stores'),
  'store.change': row(imageManagers, 'create, change and delete stores'),
  'collection.read': row(everybody, 'see collections'),
  'collection.change': row(admins, 'create, change, delete and restore collections'),
  'device.read': row(everybody, 'see devices'),
  'device.change': row(operators, 'create, change, move, delete and restore devices'),
  'device.power': row(operators, 'power devices on and off and wake them'),
  'device.capture': row(admins, 'capture the disks of devices as versions of vDisks'),
  'discovery.read': row(everybody, 'see discovered devices and the rules for them'),
  'discovery.decide': row(operators, 'adopt and ignore discovered devices'),
  'discovery.rules': row(admins, 'change the rules that adopt devices automatically'),
  'boot.read': row(everybody, 'see boots and their timelines'),
  'alert.read': row(everybody, 'see alerts, and get them by mail'),
  'alert.acknowledge': row(operators, 'acknowledge alerts'),
  'boot.inspect': row(operators, "read a boot's console and its captured packets"),
  'vdisk.read': row(everybody, 'see vDisks and their versions', { upwards: true }),
  'vdisk.change': row(imageManagers, 'create, change, promote, revert, delete and restore vDisks and versions'),
  'trash.read': row(everybody, 'see what was deleted and can be restored'),
  'trash.purge': row(admins, 'permanently delete objects in the trash'),
  'boot_menu.read': row(everybody, 'see boot menus', { upwards: true }),
  'boot_menu.change': row(imageManagers, 'create, change, assign and delete boot menus'),
  'finding.read': row(everybody, 'see what made boots slower or fail more often'),
  'finding.change': row(operators, 'acknowledge, mute and explain findings'),
  'experiment.read': row(everybody, 'see experiments with settings of boots'),
  'experiment.change': row(operators, 'start, pause, resume and stop experiments, which restart devices'),
  'schedule.read': row(everybody, 'see boot schedules and their runs'),
  'schedule.change': row(operators, 'create, change, run and delete boot schedules'),
} as const satisfies Record<string, PermissionRow>

export type Permission = keyof typeof permissions
export const permissionNames = Object.keys(permissions) as Permission[]
export const permissionView = z.enum(permissionNames as [Permission, ...Permission[]])

export function roleHas(role: Role, permission: Permission): boolean {
  return (permissions[permission].roles as readonly Role[]).includes(role)
}

export function permissionsOf(role: Role): Permission[] {
  return permissionNames.filter((permission) => roleHas(role, permission))
}

/** The role that has what both have: there is always one, which a test makes sure of. */
export function meetOf(one: Role, other: Role): Role {
  const both = permissionsOf(one).filter((permission) => roleHas(other, permission))
  const meet = roles.find(
    (role) => permissionsOf(role).length === both.length && both.every((permission) => roleHas(role, permission)),
  )
  return meet ?? 'viewer'
}

export function holdsUpwards(permission: Permission): boolean {
  return 'upwards' in permissions[permission]
}

function row(of: readonly Role[], allows: string, more: { upwards?: true } = {}): PermissionRow {
  return { roles: of, allows, ...more }
}
