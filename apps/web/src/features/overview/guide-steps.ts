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
  /** Names the action, and the checks if the step does not turn green. */
  help: string
  done: boolean
  href: string
  action: string
}

/** In their order. Each step is done as soon as its object exists, even if somebody else created it. */
const words = [
  {
    key: 'farm',
    title: 'Create a farm',
    help: 'A farm groups sites, vDisks and boot menus. Most organizations need one.',
    href: '/farms',
    action: 'Go to farms',
  },
  {
    key: 'site',
    title: 'Create a site',
    help: 'A site is one location with its edges and the devices that boot there.',
    href: '/sites',
    action: 'Go to sites',
  },
  {
    key: 'edge',
    title: 'Add an edge',
    help: 'An edge is a server at the site that boots devices. You run one command on it. This step is done when the edge has enrolled.',
    href: '/edges',
    action: 'Go to edges',
  },
  {
    key: 'online',
    title: 'Check that the edge is online',
    help: 'The edge reports every few seconds. If it does not appear, check that the service is running (systemctl status bootfarm-edge) and that the server can reach this address over HTTPS.',
    href: '/edges',
    action: 'Go to edges',
  },
  {
    key: 'vdisk',
    title: 'Create a vDisk with a version',
    help: 'Copy the disk file, its kernel and its initramfs into the edge’s store, then register them as a version.',
    href: '/vdisks',
    action: 'Go to vDisks',
  },
  {
    key: 'collection',
    title: 'Create a collection that boots it',
    help: 'Create it on the site’s page. A collection selects the vDisk its devices boot.',
    href: '/sites',
    action: 'Go to the site',
  },
  {
    key: 'device',
    title: 'Register a device',
    help: 'Power on a machine and adopt it under Discovered, or register its MAC address under Devices.',
    href: '/discovered',
    action: 'Go to Discovered',
  },
  {
    key: 'boot',
    title: 'Boot the device',
    help: 'Set the machine to boot from the network and restart it. Its boot appears with its first packet. If it does not, check that the machine is in the edge’s network and that a DHCP server gives it an address.',
    href: '/boots',
    action: 'Go to boots',
  },
  {
    key: 'ready',
    title: 'Verify the first boot',
    help: 'The boot’s page shows where the time goes and what blocks or fails the boot. This guide disappears when the first boot reaches Ready.',
    href: '/boots',
    action: 'Go to boots',
  },
] as const

export function guideSteps(facts: GuideFacts): GuideStep[] {
  const enrolled = facts.edges.filter(({ revokedAt }) => revokedAt === null)
  const done: Record<(typeof words)[number]['key'], boolean> = {
    farm: facts.farms.length > 0,
    site: facts.sites.length > 0,
    edge: enrolled.length > 0,
    online: enrolled.some(({ online }) => online),
    vdisk: facts.vdisks.some(({ newestVersion }) => newestVersion !== null),
    collection: facts.collections.some(({ vdiskId }) => vdiskId !== null),
    device: facts.devices.length > 0,
    boot: facts.boots.length > 0,
    ready: false,
  }
  return words.map((step) => ({
    ...step,
    done: done[step.key],
    // Collections are created on the page of their site.
    href: step.key === 'collection' && facts.sites[0] ? `/sites/${facts.sites[0].id}` : step.href,
  }))
}
