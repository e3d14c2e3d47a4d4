import fastifyStatic from '@fastify/static'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { AppError } from '../../errors/app-error.ts'
import { type EdgeArchitecture, type EdgeReleases, edgeArchitectures } from '../../installation/edge-releases.ts'
import { installScript } from '../../installation/install-script.ts'
import { problemError, sendProblem } from './problem.ts'

/** Anybody may ask, and a program has 12 MB: this many at once; the next one is asked to retry. */
const downloadsMax = 64
/** Servers of one site come from one address. */
const downloadsPerAddressMax = 4
/** A download that was slower for a while is ended: the script continues from where it was. */
const bytesPerSecondMin = 16_384
const rateCheckMs = 15_000
const retryAfterSeconds = 5

const parameters = z.object({ arch: z.enum(edgeArchitectures) })

/**
 * /install, for servers of sites: a script, the programs, and their signatures. Nothing here is secret and nobody signs
 * in; the join token grants the right.
 */
export async function installRoutes(
  app: FastifyInstance,
  { releases, checkMs = rateCheckMs }: { releases: EdgeReleases; checkMs?: number | undefined },
) {
  app.setErrorHandler(problem)
  await app.register(fastifyStatic, { root: import.meta.dirname, serve: false })
  const downloads = new Downloads(checkMs)

  app.get('/edge.sh', (_request, reply) => plain(reply).send(installScript(releases)))

  app.get('/edge/:arch/release', async (request, reply) =>
    plain(reply).send((await releases.read(archOf(request))).text),
  )

  app.get('/edge/:arch/release.sig', async (request, reply) =>
    plain(reply).send(`${(await releases.read(archOf(request))).signature}\n`),
  )

  app.get('/edge/:arch', async (request, reply) => {
    const arch = archOf(request)
    await releases.read(arch)
    downloads.hold(request, reply)
    reply.type('application/octet-stream').header('x-content-type-options', 'nosniff')
    return reply.sendFile('bootfarm-edge', folderOf(releases, arch), {
      cacheControl: false,
      etag: true,
      acceptRanges: true,
      maxAge: 0,
    })
  })
}

/** The downloads in progress in this process. */
class Downloads {
  readonly #addresses: string[] = []
  readonly #checkMs: number

  constructor(checkMs: number) {
    this.#checkMs = checkMs
  }

  /** Holds a place until the download ends, and ends one that is too slow. Throws `unavailable` without a place. */
  hold({ ip }: FastifyRequest, reply: FastifyReply): void {
    const ofAddress = this.#addresses.filter((address) => address === ip).length
    if (this.#addresses.length >= downloadsMax || ofAddress >= downloadsPerAddressMax)
      throw new AppError('unavailable', { public: 'Too many servers are being installed at once. Try again.' })
    this.#addresses.push(ip)
    const { socket } = reply.raw
    let written = socket?.bytesWritten ?? 0
    const timer = setInterval(() => {
      const now = socket?.bytesWritten ?? 0
      if (now - written < (bytesPerSecondMin * this.#checkMs) / 1_000) socket?.destroy()
      written = now
    }, this.#checkMs).unref()
    reply.raw.once('close', () => {
      clearInterval(timer)
      this.#addresses.splice(this.#addresses.indexOf(ip), 1)
    })
  }
}

function folderOf(releases: EdgeReleases, arch: EdgeArchitecture): string {
  return releases.programOf(arch).replace(/\/bootfarm-edge$/, '')
}

function archOf(request: FastifyRequest): EdgeArchitecture {
  const { success, data } = parameters.safeParse(request.params)
  if (success) return data.arch
  throw new AppError('not_found', { public: `Edges exist for ${edgeArchitectures.join(' and ')} only.` })
}

function plain(reply: FastifyReply): FastifyReply {
  return reply
    .type('text/plain; charset=utf-8')
    .header('cache-control', 'no-cache')
    .header('x-content-type-options', 'nosniff')
}

/** The script prints `detail`. */
function problem(thrown: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  // A range outside of the file; only downloads have it, so there is no code.
  if (thrown instanceof Error && 'statusCode' in thrown && thrown.statusCode === 416) return reply.code(416).send()
  if (problemError(thrown).code === 'unavailable') reply.header('retry-after', retryAfterSeconds)
  return sendProblem(thrown, request, reply)
}
