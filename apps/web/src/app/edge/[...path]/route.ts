import { forwardToApi } from '../../../lib/forward-to-api'

export const dynamic = 'force-dynamic'

/** Edges connect to the address that people open, unless another one is set. */
export const GET = forwardToApi
export const POST = forwardToApi
export const PUT = forwardToApi
