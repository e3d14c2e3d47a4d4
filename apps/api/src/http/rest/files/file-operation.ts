import type { Readable } from 'node:stream'
import type { z } from 'zod'
import type { PlatformContext } from '../../../context/service-context.ts'
import type { Actor } from '../../../rules/actor.ts'
import type { TrpcContext } from '../../trpc/context.ts'
import type { MemberPolicy } from '../../trpc/policy.ts'

export interface FileContext extends PlatformContext {
  actor: Actor
  takeTurn: TrpcContext['takeTurn']
  bootRetention: TrpcContext['bootRetention']
}

/** A file of any length: it is read while it is sent. */
export interface SentFile {
  name: string
  type: string
  body: Readable | Uint8Array
}

/** A GET below /api/v1 that answers with a file. */
export interface FileOperation<Input = unknown> {
  /** Its operationId. */
  id: string
  path: string
  /** One line, without a full stop. */
  summary: string
  description: string
  policy: Pick<MemberPolicy, 'permission' | 'place'>
  input: z.ZodType<Input>
  /** The media types that it answers with. */
  types: string[]
  open(context: FileContext, input: Input): Promise<SentFile>
}

/** Keeps the type of the input between its schema and its reader. */
export function fileOperation<Input>(operation: FileOperation<Input>): FileOperation {
  return operation as unknown as FileOperation
}
