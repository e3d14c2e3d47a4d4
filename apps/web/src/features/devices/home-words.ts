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
  if (isRunning) return `${deviceName} runs: shut it down, and try again half a minute later.`
  if (!home.keeps) return null
  return `${home.edge.name} keeps ${home.keeps}. Drop, seal or discard that first: ${deviceName} would not find it at another edge.`
}

/** What a move does, a sentence each: what is lost, what is kept. */
export function moveSentences({ deviceName, home, targetName }: Omit<Move, 'isRunning'>): string[] {
  const from = home.edge.name
  const then = `From then on ${targetName} keeps what ${deviceName} writes, and ${from} starts it no more where its writes are to be kept.`
  if (home.edge.isRemoved)
    return [
      `${from} was removed and cannot be asked. ${home.keeps ? `It keeps ${home.keeps}` : `Nothing that it keeps of ${deviceName} is known here`}: whatever it has is lost for good.`,
      `${targetName} keeps what ${deviceName} writes from its next boot on.`,
      'The audit log keeps what was given up, and by whom.',
    ]
  return [
    `${from} is asked to let go of ${deviceName}. It looks for itself whether it keeps anything of it.`,
    `Where it does, it says so, and nothing changes. Where it does not, nothing is lost.`,
    then,
    `An edge that is away is asked when it is back; until then ${deviceName} does not start where its writes are to be kept.`,
  ]
}
