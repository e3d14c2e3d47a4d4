/** Tells better-auth where a request came from. Nobody else's word: auth-routes.ts sets it anew for each request. */
export const addressHeader = 'x-bootfarm-address'
