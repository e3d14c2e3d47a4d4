/** Tells better-auth the address of a request. The header is trusted: auth-routes.ts sets it for each request. */
export const addressHeader = 'x-bootfarm-address'
