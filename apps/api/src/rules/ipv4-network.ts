import { z } from 'zod'

interface Network {
  /** The first `prefixLength` bits of this address are the network's. */
  address: number
  prefixLength: number
}

/** `a.b.c.d/n` whose bits beyond the prefix are 0; an error contains the correct form. */
export const ipv4Network = z
  .string()
  .trim()
  .superRefine((text, context) => {
    const problem = networkProblem(text)
    if (problem) context.addIssue({ code: 'custom', message: problem })
  })

/** Null where the text is a network. */
function networkProblem(text: string): string | null {
  const shown = JSON.stringify(text.slice(0, 40))
  const network = parseNetwork(text)
  if (!network) return `${shown} is not a network. Enter an address and a prefix length, such as 10.20.0.0/16.`
  const first = (network.address & maskOf(network.prefixLength)) >>> 0
  if (first === network.address) return null
  return `${shown} has bits beyond its prefix. Use ${textOf(first)}/${network.prefixLength}.`
}

/** Returns false for texts that are no address or no network. */
export function isInNetwork(ip: string, network: string): boolean {
  const parsed = parseNetwork(network)
  const address = parseAddress(ip)
  if (!parsed || address === null) return false
  return ((address ^ parsed.address) & maskOf(parsed.prefixLength)) === 0
}

function parseNetwork(text: string): Network | null {
  const [ip = '', prefix = '', ...rest] = text.split('/')
  const address = parseAddress(ip)
  if (address === null || rest.length > 0 || !/^(3[0-2]|[12]?\d)$/.test(prefix)) return null
  return { address, prefixLength: Number(prefix) }
}

function parseAddress(text: string): number | null {
  if (!z.ipv4().safeParse(text).success) return null
  return text.split('.').reduce((value, octet) => value * 256 + Number(octet), 0)
}

/** A shift by 32 is one by 0 in JavaScript. */
function maskOf(prefixLength: number): number {
  return prefixLength === 0 ? 0 : -1 << (32 - prefixLength)
}

function textOf(address: number): string {
  return [24, 16, 8, 0].map((shift) => (address >>> shift) & 255).join('.')
}
