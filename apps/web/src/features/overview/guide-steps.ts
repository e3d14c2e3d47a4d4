interface GuideFacts {
  farms: unknown[]
  sites: { id: string }[]
  edges: { online: boolean; revokedAt: string | null }[]
  vdisks: { newestVersion: unknown }[]
  collections: { vdiskId: string | null }[]
  devices: unknown[]
  boots: unknown[]
}

export interface GuideStep {
  key: string
  title: string
  /** What to do, and what to look at when it does not turn green. */
  help: string
  done: boolean
  href: string
  action: string
}

/** In their order; each is done as soon as what it asks for is there, whoever made it. */
export function guideSteps(facts: GuideFacts): GuideStep[] {
  const enrolled = facts.edges.filter(({ revokedAt }) => revokedAt === null)
  const siteHref = facts.sites[0] ? `/sites/${facts.sites[0].id}` : '/sites'
  const step = (key: string, done: boolean, words: Omit<GuideStep, 'key' | 'done'>) => ({
    key,
    done,
    ...words,
  })
  return [
    step('farm', facts.farms.length > 0, {
      title: 'Make a farm',
      help: 'Everything else hangs from it. One is enough for most.',
      href: '/farms',
      action: 'Go to farms',
    }),
    step('site', facts.sites.length > 0, {
      title: 'Make a site',
      help: 'One location: its edges, and the devices that boot there.',
      href: '/sites',
      action: 'Go to sites',
    }),
    step('edge', enrolled.length > 0, {
      title: 'Add an edge',
      help: 'A server at the site answers booting devices. You get one line to run there; it is done when the edge has enrolled.',
      href: '/edges',
      action: 'Go to edges',
    }),
    step(
      'online',
      enrolled.some(({ online }) => online),
      {
        title: 'See the edge online',
        help: 'It reports every few seconds. If it does not: is the service running there (systemctl status bootfarm-edge), and can it reach this address by HTTPS?',
        href: '/edges',
        action: 'Go to edges',
      },
    ),
    step(
      'vdisk',
      facts.vdisks.some(({ newestVersion }) => newestVersion !== null),
      {
        title: 'Make a vDisk with a version',
        help: 'Copy the disk file, and its kernel and initramfs, into the edge’s store, then register them as a version.',
        href: '/vdisks',
        action: 'Go to vDisks',
      },
    ),
    step(
      'collection',
      facts.collections.some(({ vdiskId }) => vdiskId !== null),
      {
        title: 'Make a collection that boots it',
        help: 'On the site’s page. A collection says which vDisk its devices boot.',
        href: siteHref,
        action: 'Go to the site',
      },
    ),
    step('device', facts.devices.length > 0, {
      title: 'Register a device',
      help: 'Switch a machine on: it appears under Discovered and is adopted by a click. Or register it by its MAC address under Devices.',
      href: '/discovered',
      action: 'Go to discovered',
    }),
    step('boot', facts.boots.length > 0, {
      title: 'Boot it',
      help: 'Set the machine to boot from the network and restart it: its boot appears with its first packet. If none does: is the machine in the edge’s network, and does a DHCP server give it an address?',
      href: '/boots',
      action: 'Go to boots',
    }),
    step('ready', false, {
      title: 'See it ready',
      help: 'The boot’s page shows where its time goes, and what it waits for or failed at. This guide is gone with the first boot that gets ready.',
      href: '/boots',
      action: 'Go to boots',
    }),
  ]
}
