import { timeRequest } from '@bootfarm/proto/uplink'
import fastifyStatic from '@fastify/static'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { Places } from '../../context/places.ts'
import type { AuthenticatedEdge, SystemContext } from '../../context/service-context.ts'
import type { UpdateRepository } from '../../installation/update-repository.ts'
import type { Clock } from '../../rules/clock.ts'
import { signTime } from '../update/sign-time.ts'
import { parseBody, parsed } from './signed-request.ts'

/** A program has some 15 MB; the next edge is asked to wait. No organization takes the places of the others. */
const downloadsMax = { organization: 4, all: 16 }

const metadataParameters = z.object({ name: z.string() })
const targetParameters = z.object({ '*': z.string() })

interface UpdateRoutesOptions {
  authenticate: (request: FastifyRequest) => Promise<AuthenticatedEdge>
  within: <T>(edge: AuthenticatedEdge, work: (tenant: SystemContext) => Promise<T>) => Promise<T>
  clock: Clock
  repository: UpdateRepository
}

/** What an edge needs to replace its own program: packages/proto/UPLINK.md, "Updates". */
export async function updateRoutes(
  app: FastifyInstance,
  { authenticate, within, clock, repository }: UpdateRoutesOptions,
): Promise<void> {
  await app.register(fastifyStatic, { root: import.meta.dirname, serve: false })

  app.post('/time', async (request) => {
    const edge = await authenticate(request)
    const { nonce } = parseBody(timeRequest, request)
    const { organizationId } = edge
    return within(edge, (tenant) => signTime(tenant, { organizationId, nonce }))
  })

  app.get('/update/metadata/:name', async (request, reply) => {
    await authenticate(request)
    const { name } = parsed(metadataParameters, request.params)
    return reply.type('application/json').send(await repository.metadata(name, clock()))
  })

  const places = new Places()
  app.get('/update/targets/*', async (request, reply) => {
    const { organizationId } = await authenticate(request)
    places.hold(reply, [
      { key: organizationId, max: downloadsMax.organization },
      { key: 'all', max: downloadsMax.all },
    ])
    const { root, file } = repository.target(parsed(targetParameters, request.params)['*'])
    return reply.type('application/octet-stream').sendFile(file, root, { cacheControl: false })
  })
}
