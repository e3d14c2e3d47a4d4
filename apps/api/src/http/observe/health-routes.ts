import type { FastifyInstance } from 'fastify'
import { AppError } from '../../errors/app-error.ts'
import { checkReadiness, type ReadinessCheck } from '../../platform/check-readiness.ts'

interface HealthOptions {
  checks: ReadinessCheck[]
  /** How long requests are still accepted after the shutdown began, so that balancers see the 503 first. */
  drain: () => Promise<void>
}

/**
 * `/healthz`: the process answers, even if everything else is unavailable: a supervisor restarts on its silence.
 * `/readyz`: the process can serve requests: a balancer uses another one on its 503, which names what is not ready.
 */
export async function healthRoutes(app: FastifyInstance, { checks, drain }: HealthOptions) {
  let isStopping = false
  app.addHook('preClose', async () => {
    isStopping = true
    await drain()
  })
  const process: ReadinessCheck = {
    part: 'process',
    problemOf: async () => (isStopping ? 'is shutting down' : null),
  }
  app.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })
  app.get('/healthz', async () => ({ status: 'ok' }))
  app.get('/readyz', async (request) => {
    const notReady = await checkReadiness([process, ...checks], (part, error) =>
      request.log.warn({ part, detail: error instanceof Error ? error.message : String(error) }, 'not ready'),
    )
    if (notReady.length === 0) return { status: 'ready' }
    const parts = notReady.map(({ part, detail }) => `${part} ${detail}`)
    throw new AppError('unavailable', {
      public: `Not ready: ${parts.join('; ')}.`,
      extra: { notReady },
    })
  })
}
