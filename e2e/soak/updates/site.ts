import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createDb } from '@bootfarm/db'
import { addVdisk } from '../../lib/control-plane/another-vdisk.ts'
import { macOf } from '../../lib/device/machine.ts'
import { patterned } from '../../lib/edge/loopback-edge.ts'
import { x86Kernel } from '../../lib/images/loader-files.ts'
import { ControlledMachines } from '../../lib/lab/controlled-machines.ts'
import { writerMac } from './account.ts'
import { guestScript } from './guests.ts'

/** Simulated devices are behind a router: each program of them has its own address. */
export const deviceNetwork = '10.79'
/** The disk of simulated devices. */
export const smallDisk = patterned(1024 * 1024)
/** Classes of the writes that an exchange must keep: in memory of the edge's process, and on its disk. */
const volatileClass = 'edge'
const durableClasses = { writers: 'private', machine: 'edge_persistent' } as const

export interface SiteSizes {
  /** Simulated devices that write, as many of each class. */
  writersPerClass: number
  machines: number
  probationSeconds: number
}

/** A site with a control plane, whose edge serves simulated devices and virtual machines. */
export interface UpdateSite {
  site: ControlledMachines
  /** Where devices find the edge. */
  url: string
  /** The file that `smallDisk` was written to. */
  diskFile: string
  /** MAC addresses of the devices that write: the first half in a volatile class. */
  writers: string[]
}

export async function startSite(settings: Record<string, string>, sizes: SiteSizes): Promise<UpdateSite> {
  const trusted = ['--trust-mac-from', `${deviceNetwork}.0.0/16`]
  const edgeOptions = [...trusted, '--probation', String(sizes.probationSeconds)]
  // The tenant's first two devices are the machines; an edge without one has them as well.
  const site = await ControlledMachines.start('updates', guestScript, ['production', 'production'], {
    settings,
    edgeOptions,
  })
  try {
    site.machines.segment.routeThroughSwitch(`${deviceNetwork}.0.0/16`)
    const store = path.join(site.machines.edgeData, 'store')
    mkdirSync(path.join(store, 'small'))
    const diskFile = path.join(store, 'small/disk')
    writeFileSync(diskFile, smallDisk)
    writeFileSync(path.join(store, 'small/kernel'), x86Kernel('6.1.0-1-simulated', patterned(30_001)))
    const writers = await fillTenant(site, sizes, path.join(store, 'images/disk.raw'))
    const url = `http://${site.machines.segment.edgeIp}:6980`
    return { site, url, diskFile, writers }
  } catch (error) {
    await site.remove()
    throw error
  }
}

/** Resolves with the MAC addresses of the writers, once the edge has the state that names them. */
async function fillTenant(site: ControlledMachines, sizes: SiteSizes, machineDisk: string): Promise<string[]> {
  const { tenant, plane, api, machines } = site
  const { organizationId, siteId, collectionId } = tenant
  const writers: string[] = []
  const ids: string[] = []
  const db = createDb(plane.databaseUrl)
  try {
    await db.vdiskVersion.update({
      where: { organizationId_id: { organizationId, id: tenant.versionId } },
      data: { sizeBytes: smallDisk.length, diskPath: 'small/disk', kernelPath: 'small/kernel', initrdPath: null },
    })
    for (let index = 0; index < 2 * sizes.writersPerClass; index += 1) {
      const mac = writerMac(index)
      const data = { organizationId, siteId, collectionId, mac, name: `writer-${index}` }
      ids.push((await db.device.create({ data })).id)
      writers.push(mac)
    }
  } finally {
    await db.$disconnect()
  }
  const ordered = [
    await addVdisk(plane.databaseUrl, site, ids.slice(0, sizes.writersPerClass), volatileClass),
    await addVdisk(plane.databaseUrl, site, ids.slice(sizes.writersPerClass), durableClasses.writers),
  ]
  const files = {
    sizeBytes: statSync(machineDisk).size,
    diskPath: 'images/disk.raw',
    kernelPath: 'images/vmlinuz',
    initrdPath: 'images/initrd.img',
    commandLine: machines.commandLine,
  }
  for (const [port, writeCache] of [volatileClass, durableClasses.machine].entries())
    ordered.push(await addVdisk(plane.databaseUrl, site, tenant.deviceIds.slice(port, port + 1), writeCache, files))
  const { revision } = await api.query<{ revision: number }>('site.get', { siteId })
  await api.mutate('site.update', { siteId, revision, unknownDevices: 'boot' })
  const last = writers.at(-1) ?? macOf(1)
  await site.untilState(
    (state) =>
      state.unknownDevices === 'boot' &&
      ordered.every((id) => state.vdisks.some((vdisk) => vdisk.id === id && vdisk.writeCache !== undefined)) &&
      state.devices.some((device) => device.mac === last && device.home !== undefined),
  )
  return writers
}
