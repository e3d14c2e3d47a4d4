import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'

export interface OidcClaims {
  email: string
  email_verified: boolean
  name: string
}

interface OidcProviderOptions {
  /** Any free one where it is left out. */
  port?: number
  clientId: string
  clientSecret: string
  /** Address of the dashboard to which people return. */
  webUrl: string
}

export interface OidcProvider {
  issuer: string
  /** Says who signs in next. */
  setClaims(claims: OidcClaims): void
  close(): void
}

/** A real provider that asks for no password: each visitor has the claims that were set last. */
export async function startOidcProvider({
  port = 0,
  clientId,
  clientSecret,
  webUrl,
}: OidcProviderOptions): Promise<OidcProvider> {
  let claims: OidcClaims = { email: '', email_verified: false, name: '' }
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [`${webUrl}/api/auth/callback/oidc`],
      },
    ],
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    conformIdTokenClaims: false,
    pkce: { required: () => true },
    findAccount: (_context, sub) => ({ accountId: sub, claims: async () => ({ sub, ...claims }) }),
    async loadExistingGrant(context) {
      const grant = new context.oidc.provider.Grant({ clientId, accountId: claims.email })
      grant.addOIDCScope('openid email profile')
      await grant.save()
      return grant
    },
    interactions: { url: (_context, interaction) => `/interaction/${interaction.uid}` },
    features: { devInteractions: { enabled: false } },
  })
  provider.use(async (context, next) => {
    if (!context.path.startsWith('/interaction/')) return next()
    const result = { login: { accountId: claims.email } }
    context.redirect(await provider.interactionResult(context.req, context.res, result))
  })
  server.on('request', provider.callback())
  return {
    issuer,
    setClaims(next) {
      claims = next
    },
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
