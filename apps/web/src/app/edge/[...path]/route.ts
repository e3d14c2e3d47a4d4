import { forwardToApi } from '../../../lib/forward-to-api'

export const dynamic = 'force-dynamic'

/** Edges dial the address that people open, where they are not told another. */
export const GET = forwardToApi
export const POST = forwardToApi
export const PUT = forwardToApi
