import { join } from 'node:path'
import type { NextConfig } from 'next'

const securityHeaders = [
  { key: 'X-Content-Type-Options', value: 'nosniff' },
  { key: 'X-Frame-Options', value: 'DENY' },
  { key: 'Referrer-Policy', value: 'same-origin' },
  { key: 'Cross-Origin-Opener-Policy', value: 'same-origin' },
  { key: 'Permissions-Policy', value: 'camera=(), microphone=(), geolocation=()' },
]

const repository = join(import.meta.dirname, '../..')

const config: NextConfig = {
  output: 'standalone',
  outputFileTracingRoot: repository,
  turbopack: { root: repository },
  transpilePackages: ['@bootfarm/proto'],
  poweredByHeader: false,
  // `npm run typecheck` and `biome check` do this once, for all packages.
  typescript: { ignoreBuildErrors: true },
  // The API's answers bring their own; src/proxy.ts adds the content security policy.
  headers: async () => [{ source: '/((?!api/).*)', headers: securityHeaders }],
}

export default config
