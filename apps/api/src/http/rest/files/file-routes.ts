import { inOrganization } from '@bootfarm/db'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { AppError } from '../../../errors/app-error.ts'
import type { TrpcContext } from '../../trpc/context.ts'
import { placesOf } from '../../trpc/policy.ts'
import { requireWithinRate } from '../../trpc/trpc.ts'
import { inputParts, type OperationInput } from '../operations.ts'
import { inputOf, invalid } from '../read-input.ts'
import { auditExport } from './audit-export.ts'
import { bootCapture } from './boot-capture.ts'
import { bootExport } from './boot-export.ts'
import { bootFile } from './boot-file.ts'
import { deviceExport } from './device-export.ts'
import { experimentExport } from './experiment-export.ts'
import type { FileOperation } from './file-operation.ts'
import { networkExport } from './network-export.ts'

/** A file operation with what serving and describing it takes. */
export interface DescribedFile extends FileOperation, OperationInput {}

export const fileOperations: DescribedFile[] = [
  auditExport,
  bootCapture,
  bootExport,
  bootFile,
  deviceExport,
  experimentExport,
  networkExport,
].map((operation) => ({
  ...operation,
  ...inputParts(operation.id, { method: 'GET', path: operation.path }, operation.input),
}))

/**
 * Answers with the file. Throws what a procedure throws: `unauthenticated`, `rate_limited`, `invalid`, `forbidden`,
 * `not_found`.
 */
export async function answerFile(
  operation: DescribedFile,
  { request, reply, context }: { request: FastifyRequest; reply: FastifyReply; context: TrpcContext },
): Promise<FastifyReply> {
  const actor = await context.findActor()
  if (!actor) throw new AppError('unauthenticated')
  if (actor.kind === 'person') requireWithinRate(context, actor.userId)
  const read = inputOf(operation, {
    params: request.params as Record<string, string>,
    query: request.query as Record<string, string | string[]>,
    body: undefined,
  })
  const { data, error } = operation.input.safeParse(read)
  if (error)
    throw invalid(
      error.issues.map(({ path, message }) => {
        const field = path.join('.')
        return { in: operation.pathNames.includes(field) ? 'path' : 'query', field, message }
      }),
    )
  const places = placesOf({ ...operation.policy }, read)
  await inOrganization(context.db, actor.organizationId, (db) =>
    context.checks.authorise({ db, actor }, operation.policy, places),
  )
  const { name, type, body } = await operation.open({ ...context, actor }, data)
  return reply
    .type(type)
    .header('content-disposition', `attachment; filename="${name}"`)
    .header('x-content-type-options', 'nosniff')
    .send(body)
}
