/** UUIDs, ULIDs, hexadecimal trace ids: what balancers make. Nothing that could end a line or begin a tag. */
const trustedFormat = /^[A-Za-z0-9][A-Za-z0-9._-]{7,63}$/

/** The request id that a balancer in front gave, where it looks like one; else null. */
export function trustedRequestId(header: string | string[] | undefined): string | null {
  return typeof header === 'string' && trustedFormat.test(header) ? header : null
}
