import type { KeyObject } from 'node:crypto'
import { uplinkSignedText, verificationKey, verifyWith } from '@bootfarm/proto/uplink-signature'
import type { AuthenticatedEdge, PlatformContext } from '../../context/service-context.ts'
import { authenticateEdge, type EdgeIdentity, findEdgeIdentity, type SignedRequest } from './authenticate-edge.ts'
import { type AcceptedVersions, versionRefusal } from './require-version.ts'

/** Edges that have proved who they are, some 2 kB each: those of the longest time ago are forgotten first. */
const edgesMax = 20_000

/** An edge whose signature fits the key that it has, or that it had when this process last read it. */
export interface RememberedEdge extends AuthenticatedEdge {
  publicKey: string
}

interface KnownEdge {
  organizationId: string
  siteId: string
  publicKey: string
  bootEpoch: number
  key: KeyObject
}

/**
 * Remembers edges, so that checking a poll's signature needs no statement. What is remembered may have changed: the
 * statement that decides the poll compares all of it (`Polls`), and nothing else may rely on it.
 */
export class KnownEdges {
  readonly #context: PlatformContext
  readonly #accepted: AcceptedVersions
  readonly #edges = new Map<string, KnownEdge>()

  constructor(context: PlatformContext, accepted: AcceptedVersions) {
    this.#context = context
    this.#accepted = accepted
  }

  /** Throws as `authenticateEdge` does, and `edge_unknown`. */
  async authenticate(request: SignedRequest): Promise<RememberedEdge> {
    const known = this.#edges.get(request.edgeId)
    if (!known || !this.#isFrom(known, request)) return this.authenticateAnew(request)
    const { organizationId, siteId, publicKey } = known
    const { edgeId, bootEpoch, counter } = request
    return { organizationId, siteId, edgeId, bootEpoch, counter, publicKey }
  }

  /** Reads the edge in any case, and remembers it. */
  async authenticateAnew(request: SignedRequest): Promise<RememberedEdge> {
    this.#edges.delete(request.edgeId)
    const identity = await findEdgeIdentity(this.#context, request.edgeId)
    const edge = await authenticateEdge(this.#context, identity, request, { anyEpoch: false, accepted: this.#accepted })
    this.#remember(edge, identity)
    return { ...edge, publicKey: identity.public_key }
  }

  #isFrom(known: KnownEdge, request: SignedRequest): boolean {
    return (
      known.bootEpoch === request.bootEpoch &&
      versionRefusal(request.uplinkVersion, this.#accepted) === null &&
      verifyWith(uplinkSignedText(request), request.signature, known.key)
    )
  }

  #remember({ edgeId, bootEpoch, organizationId, siteId }: AuthenticatedEdge, { public_key: publicKey }: EdgeIdentity) {
    const key = verificationKey(publicKey)
    if (!key) return
    const [oldest] = this.#edges.size >= edgesMax ? this.#edges.keys() : []
    if (oldest !== undefined) this.#edges.delete(oldest)
    this.#edges.set(edgeId, { organizationId, siteId, publicKey, bootEpoch, key })
  }
}
