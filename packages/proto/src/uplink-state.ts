import { z } from 'zod'
import { scheduleOrder, schedulesMax } from './uplink-schedule.ts'
import {
  deviceTypes,
  keptDifferencesMax,
  storeJobOrder,
  storeJobsMax,
  versionManifest,
  writeCacheOrder,
} from './uplink-store.ts'
import { base64, count, macAddress, untrustedText, uuid } from './uplink-values.ts'

/** The desired state of an edge; see UPLINK.md. */

/** An edge refuses a state with more. */
export const powerOnsMax = 1024
export const powerOrdersMax = 1024
export const bootMenusMax = 256
export const ignoredMacsMax = 4096
/** Edges of one site, and so the edges that one talks to, itself included. */
export const siteEdgesMax = 16
/** Edges that keep what devices of one site write: its own, and those of other sites that devices have come from. */
export const homeEdgesMax = 64
/** A state has one for each choice that its collections have made. */
export const keyPoliciesMax = 64
/** Different lists of settings of boots. */
export const tuningsMax = 512
/** Boots of experiments that a site's edges wait for. */
export const trialsMax = 512

/** Orders for a running device. */
export const powerOrders = ['power_off', 'restart'] as const

/**
 * Where people open the dashboard. Devices print it, and scripts carry it: only what no screen, iPXE, GRUB or command
 * line takes for anything else.
 */
export const printableUrl = z
  .string()
  .max(128)
  .regex(/^https?:\/\/[A-Za-z0-9][A-Za-z0-9.:/_~-]*$/)

/** Programs that are published together at an edge and chosen by this name, e.g. `ipxe`, `shim-grub`. */
export const bootProgramSetName = z.string().regex(/^[a-z0-9][a-z0-9-]{0,31}$/)
/** Which boots have their packets before the stream kept and sent to the API. */
/** A week. */
export const cacheCopyHoursMax = 168

export const captureChoices = ['never', 'failed', 'always'] as const

/** Shown by the loader before anything starts. */
export const bootMenu = z.object({
  id: uuid,
  /** How long the device waits for a choice before it takes the default. */
  timeoutMs: count.min(1000).max(3_600_000),
  /** Index into `entries`. */
  defaultEntry: count,
  entries: z
    .array(
      z.discriminatedUnion('kind', [
        z.object({
          kind: z.literal('version'),
          title: untrustedText.min(1),
          versionId: uuid,
          /** It stands for the version that the vDisk's production devices boot, so a pending release changes it. */
          followsVdisk: z.boolean().optional(),
        }),
        z.object({ kind: z.literal('local_disk'), title: untrustedText.min(1) }),
      ]),
    )
    .min(1)
    .max(16),
})
export type BootMenu = z.infer<typeof bootMenu>

/**
 * The edges of a site, from which each edge decides alone, and with the same result, which edge owns a device
 * (PEERS.md).
 */
export const siteEdges = z.object({
  /**
   * Authenticates the messages between edges of the site; the control plane makes it, and only it and they ever have
   * it. Absent in a state whose keys are sealed.
   */
  key: base64(32).optional(),
  /**
   * Fail-over tickets of devices (STREAM.md) are sealed with the first key and opened with all; absent: no device fails
   * over.
   */
  ticketKeys: z.array(base64(32)).min(1).max(2).optional(),
  edges: z
    .array(
      z.object({
        id: uuid,
        /** The edge's share of devices among the edges that may serve one; 0: only where no other is left. */
        weight: count.max(100),
        /** `a.b.c.d/n`: devices of these networks are served here first; empty: no preference. */
        subnets: z.array(z.cidrv4()).max(32),
        /** Takes no new boots while another edge can. */
        draining: z.boolean(),
        /** From its last heartbeat. */
        address: z.ipv4().nullable(),
        peerPort: count.max(65535).nullable(),
        /** The stream's port, at the same address. */
        streamPort: count.max(65535).nullable().optional(),
      }),
    )
    .max(siteEdgesMax),
})
export type SiteEdges = z.infer<typeof siteEdges>

/** How the key of a device becomes known: by its first boot, or once a person has approved it. */
export const keyLearnings = ['accept_first', 'approve'] as const
/** What devices without a known key may boot: `shared` leaves out what is private to a device or kept of it. */
export const keylessAccesses = ['everything', 'shared', 'nothing'] as const

/** What is sealed to the edge in `sealed`; see `sealStateKeys`. */
export const sealedStateKeys = z.object({ siteKey: base64(32), ticketKeys: z.array(base64(32)).min(1).max(2) })
export type SealedStateKeys = z.infer<typeof sealedStateKeys>

/** A version of the edge's program, as its release metadata name it. */
export const releaseVersion = z
  .string()
  .max(64)
  .regex(/^\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]*)?$/)

const stateFields = z.object({
  schema: z.literal(1),
  edgeId: uuid,
  organizationId: uuid,
  siteId: uuid,
  siteName: z.string(),
  incarnation: count,
  counter: count,
  issuedUnixMs: count,
  /**
   * How to treat devices that are not in `devices`: `ignore` gives them no answer; `boot` gives them the first version
   * of the first vDisk.
   */
  unknownDevices: z.enum(['ignore', 'boot']),
  vdisks: z.array(
    z.object({
      id: uuid,
      name: z.string(),
      /** Absent: `device_ram` without a limit. */
      writeCache: writeCacheOrder.optional(),
      /** The version that production devices boot while there is no override. */
      defaultVersionId: uuid.optional(),
      overrideVersionId: uuid.optional(),
      /**
       * From that instant on this is the default: devices and menu entries of the old one get it, also with the control
       * plane away.
       */
      pending: z.object({ versionId: uuid, atUnixMs: count }).optional(),
      /** The version that production devices boot comes first. */
      versions: z.array(
        z.object({
          id: uuid,
          number: count,
          sizeBytes: count,
          /** Paths are relative to the edge's store directory, `/`-separated, without `..`. */
          diskPath: z.string(),
          kernelPath: z.string().nullable(),
          initrdPath: z.string().nullable(),
          commandLine: z.string(),
          /** In the edge's store instead of a file at `diskPath`; absent: a file. */
          manifest: versionManifest.optional(),
          /** For a version that is still being written: what its layer lies above. */
          layerAboveVersionId: uuid.optional(),
        }),
      ),
    }),
  ),
  devices: z.array(
    z.object({
      id: uuid,
      name: z.string(),
      mac: macAddress,
      versionId: uuid,
      enabled: z.boolean(),
      /** Absent: `production`. */
      deviceType: z.enum(deviceTypes).optional(),
      /** The device is the one that writes `versionId`. */
      writes: z.boolean().optional(),
      /**
       * Index into `homeEdges`: the one edge that keeps what the device writes; absent: it writes nothing that is kept.
       */
      home: count.optional(),
      /** Set where it differs from the site's. */
      bootProgramSet: bootProgramSetName.optional(),
      menuId: uuid.optional(),
      /** Index into `keyPolicies`; absent: `accept_first` and `everything`. */
      keyPolicy: count.optional(),
      /** SHA-256 of the public key of its TPM that is known; absent: none is. */
      key: base64(32).optional(),
      /** A person has decided that it has no key. */
      keyless: z.literal(true).optional(),
      /** Counts what people have decided about its key; absent: 0. */
      keyRevision: count.optional(),
      /** Index into `tunings`; absent: its boots have no settings beside their version's. */
      tuning: count.optional(),
    }),
  ),
  /** Which programs devices without their own set get; absent: the edge's first. */
  bootProgramSet: bootProgramSetName.optional(),
  menus: z.array(bootMenu).max(bootMenusMax).optional(),
  /** Devices that get no answer and are not reported as discovered. */
  ignoredMacs: z.array(macAddress).max(ignoredMacsMax).optional(),
  /**
   * The edge's public key, where somebody ordered a new one in its place; the edge makes it and reports it
   * (`rotate-key`).
   */
  rotateKey: base64(32).optional(),
  /** The release that the edge is to run; absent: the one that it has. `attempt` counts the orders. */
  release: z.object({ version: releaseVersion, attempt: count }).optional(),
  /** Absent: `failed`. */
  capture: z.enum(captureChoices).optional(),
  /** Absent: devices print no link to their boot's page. */
  dashboardUrl: printableUrl.optional(),
  /** Hours between two copies of write caches for another edge of the site; absent: none. */
  cacheCopyHours: z.number().int().min(1).max(cacheCopyHoursMax).optional(),
  /** Absent where the site has one edge. */
  siteEdges: siteEdges.optional(),
  /** Edges that keep what devices of this state write, this one or others; at most one per device. */
  homeEdges: z
    .array(z.object({ id: uuid, name: z.string() }))
    .max(homeEdgesMax)
    .optional(),
  /** The choices of the devices' collections, where they differ from that. */
  keyPolicies: z
    .array(z.object({ learn: z.enum(keyLearnings), without: z.enum(keylessAccesses) }))
    .max(keyPoliciesMax)
    .optional(),
  /** Lists of settings of boots, `name=value`; see UPLINK.md. An edge leaves out those that it does not know. */
  tunings: z
    .array(z.array(z.string().max(64)).max(16))
    .max(tuningsMax)
    .optional(),
  /**
   * For the next boot of a device, in place of its own settings: a boot of an experiment, which the boot's report
   * names. An edge that does not know all of its settings leaves it alone.
   */
  trials: z
    .array(z.object({ id: uuid, deviceId: uuid, tuning: count, untilUnixMs: count }))
    .max(trialsMax)
    .optional(),
  /** `sealedStateKeys` as JSON, sealed to the edge's key (HPKE); without it, `siteEdges` has them in clear text. */
  sealed: z.string().max(4096).optional(),
  /** Wake-on-LAN packets to send; each id at least once, repeats are harmless. Gone from the snapshot after 60 s. */
  powerOns: z.array(z.object({ id: uuid, deviceId: uuid, mac: macAddress })).max(powerOnsMax),
  /** For running devices, handed over when one reports next (STREAM.md, REPORT). Gone from the snapshot after 60 s. */
  powerOrders: z
    .array(z.object({ id: uuid, deviceId: uuid, mac: macAddress, order: z.enum(powerOrders) }))
    .max(powerOrdersMax)
    .optional(),
  /** Jobs of this edge; one that disappears from the state must be stopped if it is running. */
  storeJobs: z.array(storeJobOrder).max(storeJobsMax).optional(),
  /** Differences that the edge keeps for other edges of its site; it removes all others that no job names. */
  keptDifferences: z.array(uuid).max(keptDifferencesMax).optional(),
  /** Absent: none. */
  schedules: z.array(scheduleOrder).max(schedulesMax).optional(),
})
/** The complete desired state of an edge; kept on its disk so that it boots devices with the API away. */
export const desiredState = stateFields
  .refine(
    ({ devices, schedules = [] }) =>
      schedules.every((schedule) => schedule.devices.every((index) => index < devices.length)),
    { path: ['schedules'], message: 'a schedule names a device that the state does not have' },
  )
  .refine(({ devices, homeEdges = [] }) => devices.every(({ home }) => home === undefined || home < homeEdges.length), {
    path: ['homeEdges'],
    message: 'a device names an edge that the state does not have',
  })
  .refine(
    ({ devices, keyPolicies = [] }) =>
      devices.every(({ keyPolicy, key, keyless }) => {
        return (keyPolicy === undefined || keyPolicy < keyPolicies.length) && !(key && keyless)
      }),
    { path: ['keyPolicies'], message: 'a device names a policy that the state does not have, or has a key and none' },
  )
  .refine(
    ({ devices, trials = [], tunings = [] }) =>
      [...devices, ...trials].every(({ tuning = 0 }) => tuning < Math.max(1, tunings.length)),
    { path: ['tunings'], message: 'a device or a trial names settings that the state does not have' },
  )
export type DesiredState = z.infer<typeof desiredState>
