import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { AppError, errorTable } from '../../errors/app-error.ts'
import { Accounts, credentialOf } from './accounts.ts'
import { Refusals, retryAfterSeconds } from './refusals.ts'
import { type TurnKind, Turns } from './turns.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** End the turns that the request has. */
    turnEnds: (() => void)[] | null
  }
}

/** What is smaller costs less to read than to hold up. */
const smallBodySizeMax = 64 * 1024
/** Edges have limits of their own (`Places`) and poll for half a minute; supervisors ask for the rest. */
const governedPrefix = '/api/'
const batchPrefix = '/api/trpc/'
const tooMany = errorTable.rate_limited.status

/** How requests of one process share its event loop. */
export interface Governor {
  turns: Turns
  accounts: Accounts
  refusals: Refusals
}

/** @param onStarted called for each turn, with the time that it waited */
export function newGovernor(onStarted?: (kind: TurnKind, waitedMs: number) => void): Governor {
  return { turns: new Turns(onStarted ? { onStarted } : {}), accounts: new Accounts(), refusals: new Refusals() }
}

/**
 * Lets requests of people and keys wait for their turns, a large body before it is read. Refusals of callers that are
 * not known, and of those who are to wait, are held back once they are many. @param onRefused called for a request
 * whose account has too many that wait
 */
export function takeTurns(app: FastifyInstance, governor: Governor, onRefused: () => void): void {
  const { turns, accounts } = governor
  app.decorateRequest('turnEnds', null)
  const take = async (kind: TurnKind, request: FastifyRequest, reply: FastifyReply) => {
    const end = await turns.take(accounts.of(request), kind).catch((error: unknown) => {
      onRefused()
      throw error
    })
    request.turnEnds = [...(request.turnEnds ?? []), end]
    if (!reply.raw.destroyed) return
    // The caller left while it waited: nothing is done for nobody.
    endTurns(request)
    reply.hijack()
  }
  app.addHook('onRequest', async (request, reply) => {
    if (!isGoverned(request)) return
    reply.raw.once('close', () => endTurns(request))
    const kind = turnBeforeBody(request)
    // Whoever sends a large body is signed in.
    if (kind === 'upload' && credentialOf(request) === null) throw new AppError('unauthenticated')
    if (kind) await take(kind, request, reply)
  })
  app.addHook('preValidation', async (request, reply) => {
    if (!isGoverned(request)) return
    const kind = isLarge(request.body) ? 'large' : 'request'
    if (kind === turnBeforeBody(request)) return
    // Nothing is parsed yet: what arrived slowly holds up nobody.
    endTurns(request)
    await take(kind, request, reply)
  })
  holdRefusals(app, governor)
}

function endTurns(request: FastifyRequest): void {
  const ends = request.turnEnds ?? []
  request.turnEnds = null
  for (const end of ends) end()
}

/** By the matched route, never by the address: `/%61pi/` leads to the same one. */
function isGoverned({ routeOptions: { url } }: FastifyRequest): boolean {
  return url?.startsWith(governedPrefix) ?? false
}

/** Null for a body that is small or is refused for its size: it costs little until it is complete. */
function turnBeforeBody({ headers, routeOptions: { bodyLimit = 0 } }: FastifyRequest): TurnKind | null {
  const size = Number(headers['content-length'] ?? 0)
  if (size > smallBodySizeMax && size <= bodyLimit) return 'upload'
  // Its size is not known. The dashboard's server sends all bodies so.
  return headers['transfer-encoding'] === undefined ? null : 'request'
}

function isLarge(body: unknown): boolean {
  return typeof body === 'string' && body.length > smallBodySizeMax
}

/** How many refusals it is: tRPC answers a batch as one request. */
function callsOf({ routeOptions: { url }, raw }: FastifyRequest): number {
  if (!url?.startsWith(batchPrefix)) return 1
  const [path = ''] = (raw.url ?? '').split('?', 1)
  return path.split(',').length
}

function holdRefusals(app: FastifyInstance, { accounts, refusals }: Governor): void {
  app.addHook('onSend', async (request, reply, payload) => {
    endTurns(request)
    const status = payload instanceof Response ? payload.status : reply.statusCode
    accounts.learn(request, status)
    if (status === tooMany && !reply.hasHeader('retry-after')) reply.header('retry-after', String(retryAfterSeconds))
    const isRefusal = status === tooMany || (request.caller === null && status >= 400 && status < 500)
    if (!isRefusal) return
    const left = new AbortController()
    reply.raw.once('close', () => left.abort())
    const isHeard = await refusals.hold(accounts.of(request), left.signal, callsOf(request))
    if (!isHeard) request.raw.socket.destroy()
  })
}
