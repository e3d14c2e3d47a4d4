import type { RouterOutputs } from '../../lib/trpc'

type DeviceDetail = RouterOutputs['device']['get']
export type DeviceHome = NonNullable<DeviceDetail['home']>

interface Move {
  deviceName: string
  home: Pick<DeviceHome, 'edge' | 'keeps'>
  targetName: string
  isRunning: boolean
}

/** Why a move would be refused; null: it would not, as far as is known here. */
export function moveRefusal({ deviceName, home, isRunning }: Omit<Move, 'targetName'>): string | null {
  if (home.edge.isRemoved) return null
  if (isRunning) return `${deviceName} is running. Shut it down and try again after half a minute.`
  if (!home.keeps) return null
  return `${home.edge.name} stores ${home.keeps}. Delete, seal or discard that first: ${deviceName} could not use it on another edge.`
}

/** The effects of a move, a sentence each: what is lost, what is kept. */
export function moveSentences({ deviceName, home, targetName }: Omit<Move, 'isRunning'>): string[] {
  const from = home.edge.name
  const then = `${targetName} then stores the writes of ${deviceName}. ${from} no longer boots it with persistent writes.`
  if (home.edge.isRemoved)
    return [
      `${from} was removed and cannot be contacted. ${home.keeps ? `It stores ${home.keeps}` : `No stored writes of ${deviceName} are known`}. Anything stored there is permanently lost.`,
      `${targetName} stores the writes of ${deviceName} from its next boot.`,
      'The audit log records what was given up and by whom.',
    ]
  return [
    `${from} is asked to release ${deviceName}. It first checks whether it stores any writes of the device.`,
    `If it does, it refuses and nothing changes. If it does not, nothing is lost.`,
    then,
    `If the edge is offline, it is asked when it returns. Until then ${deviceName} does not boot with persistent writes.`,
  ]
}
