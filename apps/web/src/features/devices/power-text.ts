import type { Listed, RouterInputs } from '../../lib/trpc'

export type PowerOrder = RouterInputs['device']['orderPower']['order']

/** The device as an order names it. */
export interface OrderedDevice {
  id: string
  name: string
  mac: string
}

/** Also without its disk: an order still reaches it then. */
export function takesOrders({ now, waitsFor }: Pick<Listed<'device'>, 'now' | 'waitsFor'>): boolean {
  return now.state === 'running' || waitsFor?.reason === 'lost_disk'
}

export const powerText = {
  restart: { verb: 'Restart', noun: 'restart', does: 'restarts its operating system' },
  power_off: { verb: 'Power off', noun: 'power-off', does: 'shuts down and powers off' },
} as const satisfies Record<PowerOrder, { verb: string; noun: string; does: string }>
