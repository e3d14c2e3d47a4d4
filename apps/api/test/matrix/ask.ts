import { type Operation, readOperations } from '../../src/http/rest/operations.ts'
import type { procedurePolicies } from '../../src/http/trpc/policies.ts'
import { callRest, requestOf } from '../rest-client.ts'
import type { TestApi } from '../test-api.ts'
import { callProcedure } from '../test-client.ts'

export type Procedure = ReturnType<typeof procedurePolicies>[number]

/** An answer, by tRPC or REST. */
export interface Told {
  status: number
  code: string | undefined
  text: string
}

const operations = new Map(
  readOperations().operations.map((operation): [string, Operation] => [operation.id, operation]),
)

export interface Question {
  input: object | undefined
  headers: Record<string, string>
}

export async function ask(api: TestApi, { path, type }: Procedure, question: Question): Promise<Told> {
  const { status, code, text } = await callProcedure(api, { path, type, ...question })
  return { status, code, text }
}

/**
 * Asks the same by REST; null if the procedure is no operation. Parts that differ in every answer are removed from the
 * text.
 */
export async function askByRest(api: TestApi, { path }: Procedure, { input, headers }: Question): Promise<Told | null> {
  const operation = operations.get(path)
  if (!operation) return null
  const request = requestOf(operation, input)
  const answer = await callRest(api, request.path, { ...request.call, headers })
  const code = (answer.body as { code?: string } | undefined)?.code
  const text = answer.text.replace(/"requestId":"[0-9a-f-]+"/, '')
  return { status: answer.status, code, text }
}

/** Runs few at a time: an API has ten connections. */
export async function inTurns<T>(items: T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values()
  await Promise.all(
    Array.from({ length: 6 }, async () => {
      for (const item of left) await work(item)
    }),
  )
}
