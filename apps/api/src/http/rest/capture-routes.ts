import { inOrganization } from '@bootfarm/db'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Checks } from '../../access/checks.ts'
import { readCaptureFile } from '../../boot/get-boot-capture.ts'
import type { PlatformContext } from '../../context/service-context.ts'
import { AppError } from '../../errors/app-error.ts'
import type { Actor } from '../../rules/actor.ts'

interface CaptureRoutesOptions {
  context: PlatformContext
  checks: Checks
  findActor: (request: FastifyRequest) => Promise<Actor | null>
}

const parameters = z.object({ bootId: z.uuid() })

/** The one thing that the dashboard saves as a file. */
export async function captureRoutes(app: FastifyInstance, { context, checks, findActor }: CaptureRoutesOptions) {
  app.get('/boots/:bootId/capture.pcap', async (request, reply) => {
    const actor = await findActor(request)
    if (!actor) throw new AppError('unauthenticated')
    const { success, data } = parameters.safeParse(request.params)
    if (!success) throw new AppError('invalid', { public: 'This is not the ID of a boot.' })
    const places = [{ kind: 'boot' as const, ids: [data.bootId] }]
    const { name, pcap } = await inOrganization(context.db, actor.organizationId, async (db) => {
      await checks.authorise({ db, actor }, { permission: 'boot.inspect' }, places)
      return readCaptureFile({ db, actor }, data.bootId)
    })
    return reply
      .type('application/vnd.tcpdump.pcap')
      .header('content-disposition', `attachment; filename="${name}"`)
      .header('cache-control', 'no-store')
      .header('x-content-type-options', 'nosniff')
      .send(Buffer.from(pcap))
  })
}
