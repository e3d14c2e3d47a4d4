'use client'

import type { AppRouter, RouterOutputs } from '@bootfarm/api/router'
import { type QueryKey, useQueryClient } from '@tanstack/react-query'
import { createTRPCContext } from '@trpc/tanstack-react-query'

export type { BootChange, RouterInputs, RouterOutputs } from '@bootfarm/api/router'
export { nextPage } from './next-page'

export const { TRPCProvider, useTRPC, useTRPCClient } = createTRPCContext<AppRouter>()

/** An item of a noun's list. */
export type Listed<
  Noun extends {
    [N in keyof RouterOutputs]: RouterOutputs[N] extends { list: { items: unknown[] } } ? N : never
  }[keyof RouterOutputs],
> = RouterOutputs[Noun]['list']['items'][number]

/** Returns one sentence for people from any error of a query. */
export function readableError(error: unknown): string {
  if (error instanceof TypeError || isUnreachable(error)) return 'The control plane does not respond. Try again.'
  if (error instanceof Error && error.message !== '') return error.message
  return 'Something went wrong.'
}

/** Like `readableError`, for a form: without the input's path, which the API puts before its message. */
export function formProblem(error: unknown): string | null {
  return error ? readableError(error).replace(/^[A-Za-z]+(\.\w+)*: /, '') : null
}

/** tRPC's code of the error, where the API gave one. */
export function errorCode(error: unknown): string | undefined {
  const code = fieldOf(fieldOf(error, 'data'), 'code')
  return typeof code === 'string' ? code : undefined
}

/** The change is for a person who has signed in, or entered the password, within the last minutes. */
export function isConfirmationNeeded(error: unknown): boolean {
  return fieldOf(fieldOf(error, 'data'), 'appCode') === 'confirmation_needed'
}

/** No tRPC answer at all: the network, or the dashboard's server could not reach the API. */
function isUnreachable(error: unknown): boolean {
  return fieldOf(error, 'name') === 'TRPCClientError' && errorCode(error) === undefined
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined
}

/** For `onSuccess`: reads again what a change touched, or everything without a filter. */
export function useRefresh(filter?: { queryKey: QueryKey }): () => Promise<void> {
  const queryClient = useQueryClient()
  return () => queryClient.invalidateQueries(filter && { queryKey: filter.queryKey })
}
