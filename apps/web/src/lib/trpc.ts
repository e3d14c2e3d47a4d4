'use client'

import type { AppRouter } from '@bootfarm/api/router'
import { createTRPCContext } from '@trpc/tanstack-react-query'

export type { RouterInputs, RouterOutputs } from '@bootfarm/api/router'

export const { TRPCProvider, useTRPC, useTRPCClient } = createTRPCContext<AppRouter>()
