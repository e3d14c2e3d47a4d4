import type { z } from 'zod'
import { visibleDevices } from '../access/visible.ts'
import { listOrder } from '../context/list-order.ts'
import type { ServiceContext } from '../context/service-context.ts'
import { personalityOf } from '../rules/device/personality.ts'
import type { ExportedDevice } from './device-csv.ts'
import { filterOf } from './list-devices.ts'
import { type deviceListInput, deviceSort } from './schema.ts'

type Context = Pick<ServiceContext, 'db' | 'actor'>
type Input = z.output<typeof deviceListInput>

interface ExportPage<Item> {
  items: Item[]
  nextCursor: string | null
}

/** The variables of each device, of one page. */
export async function personalityNames({ db, actor }: Context, input: Input): Promise<ExportPage<string[]>> {
  const order = listOrder(deviceSort, input)
  const rows = await db.device.findMany({ ...pageOf(actor, input, order), select: { ...key, personality: true } })
  return order.page(rows, ({ personality }) => Object.keys(personalityOf(personality)))
}

/** Devices as they can be imported again. */
export async function exportPage({ db, actor }: Context, input: Input): Promise<ExportPage<ExportedDevice>> {
  const order = listOrder(deviceSort, input)
  const rows = await db.device.findMany({
    ...pageOf(actor, input, order),
    select: {
      ...key,
      mac: true,
      enabled: true,
      tags: true,
      personality: true,
      bootProgramSet: true,
      bootMenuChoice: true,
      bootMenu: { select: { name: true } },
      vdisk: { select: { name: true } },
      deviceType: true,
      collection: { select: { name: true } },
    },
  })
  return order.page(
    rows,
    ({
      id: _,
      createdAt: _createdAt,
      lastBootStartedAt: _startedAt,
      collection,
      vdisk,
      bootMenu,
      bootMenuChoice,
      bootProgramSet,
      personality,
      ...row
    }) => ({
      ...row,
      collection: collection.name,
      vdisk: vdisk?.name ?? null,
      bootPrograms: bootProgramSet,
      bootMenu: { collection: 'collection', none: null, own: bootMenu?.name ?? null }[bootMenuChoice],
      personality: personalityOf(personality),
    }),
  )
}

/** Every field that devices are sorted by. */
const key = { id: true, name: true, createdAt: true, lastBootStartedAt: true } as const

function pageOf(actor: Context['actor'], input: Input, { where, orderBy, take }: ReturnType<typeof listOrder>) {
  return {
    where: {
      organizationId: actor.organizationId,
      AND: [visibleDevices(actor), filterOf(input), where],
    },
    orderBy,
    take,
  }
}
