import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { DesiredState, powerOrders as powerOrderNames } from '@bootfarm/proto/uplink'
import { publicKeyOf, signText, stateSignedText } from '@bootfarm/proto/uplink-signature'

/** Nothing listens there: the control plane is away. */
const controlPlaneUrl = 'http://127.0.0.1:9'

export const testUuid = (number: number) => `${number.toString(16).padStart(8, '0')}-0000-4000-8000-000000000000`

export type TestVersion = Omit<DesiredState['vdisks'][number]['versions'][number], 'id' | 'number'> & {
  /** Set for the device that boots it. */
  bootProgramSet?: string | undefined
  /** Set for its vDisk. */
  writeCache?: DesiredState['vdisks'][number]['writeCache']
  /** Set for that device: an index into the state's `homeEdges`. */
  home?: number
}

export interface TestPowerOrder {
  /** The device, as an index into `macs`. */
  port: number
  order: (typeof powerOrderNames)[number]
}

/** The boot menu of every device. */
export type TestMenu = Omit<NonNullable<DesiredState['menus']>[number], 'id'>

/** Describes a version of a store for a state, by what `vdisk show --json` prints of it. */
export function storedVersion(shown: string): { vdisks: DesiredState['vdisks']; versionId: string } {
  const { version: id, sizeBytes, commandLine, manifest } = JSON.parse(shown)
  const version = {
    id,
    number: 1,
    sizeBytes,
    diskPath: '',
    kernelPath: null,
    initrdPath: null,
    commandLine,
    manifest: { root: manifest.root, counter: manifest.counter },
  }
  return { vdisks: [{ id: testUuid(100), name: 'stored', versions: [version] }], versionId: id }
}

/**
 * Writes the data directory of an edge that has enrolled and received its desired state: device `macs[i]` boots
 * `versions[i]`. Paths are relative to `directory`/store.
 */
export function writeEnrolledEdge(
  directory: string,
  macs: string[],
  versions: TestVersion[],
  powerOrders: TestPowerOrder[] = [],
  menu?: TestMenu,
  more: Partial<DesiredState> = {},
): void {
  const seed = Buffer.alloc(32, 7)
  const [organizationId, siteId, keyId] = [2, 3, 4].map(testUuid) as [string, string, string]
  const edgeId = more.edgeId ?? testUuid(1)
  const state: DesiredState = {
    schema: 1,
    edgeId,
    organizationId,
    siteId,
    siteName: 'test',
    incarnation: 1,
    counter: 1,
    issuedUnixMs: 0,
    unknownDevices: 'ignore',
    vdisks: versions.map(({ bootProgramSet: _set, home: _home, writeCache, ...version }, index) => ({
      id: testUuid(100 + index),
      name: `disk ${index}`,
      ...(writeCache ? { writeCache } : {}),
      versions: [{ id: versionIdOf(index), number: 1, ...version }],
    })),
    devices: macs.map((mac, index) => ({
      id: testUuid(300 + index),
      name: `device ${index}`,
      mac,
      versionId: versionIdOf(index),
      enabled: true,
      ...(menu ? { menuId } : {}),
      ...(versions[index]?.home === undefined ? {} : { home: versions[index].home }),
      ...(versions[index]?.bootProgramSet && { bootProgramSet: versions[index].bootProgramSet }),
    })),
    ...(menu ? { menus: [{ id: menuId, ...menu }] } : {}),
    powerOns: [],
    powerOrders: powerOrders.map(({ port, order }, index) => ({
      id: testUuid(400 + index),
      deviceId: testUuid(300 + port),
      mac: macs[port] ?? '',
      order,
    })),
    ...more,
  }
  const payload = JSON.stringify(state)
  const signature = signText(stateSignedText(payload), seed)
  const signingKey = publicKeyOf(seed)
  mkdirSync(path.join(directory, 'store'), { recursive: true })
  const identity = { edgeId, organizationId, siteId, siteName: 'test', url: controlPlaneUrl }
  writeFileSync(path.join(directory, 'identity.json'), JSON.stringify({ ...identity, signingKeyId: keyId, signingKey }))
  writeFileSync(path.join(directory, 'state.json'), JSON.stringify({ payload, signature, keyId }))
}

const menuId = testUuid(500)
export const versionIdOf = (index: number) => testUuid(200 + index)
export const orderIdOf = (index: number) => testUuid(400 + index)
