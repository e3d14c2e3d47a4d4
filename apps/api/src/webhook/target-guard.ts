import { BlockList, isIP, isIPv4 } from 'node:net'
import { AppError } from '../errors/app-error.ts'

/** Destinations that are allowed beside the public internet: set by the operator of this installation. */
export interface TargetPolicy {
  /** CIDR, e.g. `10.20.0.0/16`. In these, plain HTTP and any port are fine, too. */
  allowedNetworks: string[]
  /** Name servers, with ports, instead of this machine's. */
  nameServers?: string[]
}

export interface Address {
  address: string
  family: 4 | 6
}

/**
 * Addresses by which our request could reach what only this machine or its network should: RFC 6890 and its registries.
 */
const refusedV4 = listOf([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
])
/** Separate: in a list with both, networks of IPv6 that contain IPv4's would refuse all of that. */
const refusedV6 = listOf([
  // All except global unicast, and of that the ranges that lead to IPv4 (Teredo, 6to4, NAT64), to documentation or to
  // nowhere.
  '::/3',
  '4000::/2',
  '8000::/1',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
])
const portsAllowed = new Set(['', '443', '8443'])

/**
 * Throws `invalid` for an address to which no message is ever sent. Names are resolved and checked at each delivery.
 */
export function requireSendable(url: string, policy: TargetPolicy): void {
  const target = new URL(url)
  if (target.username || target.password)
    throw new AppError('invalid', { public: 'url: It must not contain a user name or password.' })
  const host = hostOf(target)
  if (isIP(host)) refuseAddress(target, { address: host, family: isIPv4(host) ? 4 : 6 }, policy)
  else if (policy.allowedNetworks.length === 0) refuseScheme(target)
}

/** Throws a sentence for the delivery log. */
export function refuseAddress(target: URL, address: Address, policy: TargetPolicy): void {
  if (isIn(policy.allowedNetworks, address)) return
  if (isSpecial(address))
    throw new AppError('invalid', {
      public: 'url: It leads into a private or special network. Messages are sent to the public internet only.',
    })
  refuseScheme(target)
}

/**
 * Like `refuseAddress`, for the address that a name has in DNS, or null. One sentence for names that do not exist and
 * for those of private networks: otherwise the log would list the names that the installation's network has.
 */
export function refuseResolved(target: URL, address: Address | null, policy: TargetPolicy): Address {
  if (address !== null && (isIn(policy.allowedNetworks, address) || !isSpecial(address))) {
    refuseAddress(target, address, policy)
    return address
  }
  throw new AppError('invalid', {
    public:
      'The host name is unknown to DNS, or leads into a private or special network. Messages are sent to the public internet only.',
  })
}

function isSpecial({ address, family }: Address): boolean {
  return family === 4 ? refusedV4.check(address, 'ipv4') : refusedV6.check(address, 'ipv6')
}

function isIn(networks: string[], { address, family }: Address): boolean {
  const ofFamily = networks.filter((network) => network.includes(':') === (family === 6))
  return listOf(ofFamily).check(address, family === 4 ? 'ipv4' : 'ipv6')
}

function refuseScheme({ protocol, port }: URL): void {
  if (protocol !== 'https:') throw new AppError('invalid', { public: 'url: Enter an https:// URL.' })
  if (!portsAllowed.has(port)) throw new AppError('invalid', { public: 'url: Its port must be 443 or 8443.' })
}

export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '')
}

function listOf(networks: string[]): BlockList {
  const list = new BlockList()
  for (const network of networks) {
    const [address = '', bits = ''] = network.split('/')
    list.addSubnet(address, Number(bits), isIPv4(address) ? 'ipv4' : 'ipv6')
  }
  return list
}
