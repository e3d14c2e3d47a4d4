import { type Role, roles, roleView } from '../rules/permissions.ts'

/** Settings of the provider by which people sign in beside e-mail and password. */
export interface OidcSettings {
  issuer: string
  clientId: string
  clientSecret: string
  /** On the button, e.g. `Keycloak`. */
  name: string
  rules: DomainRule[]
}

/** People whom the provider confirms with an address of this domain become members. */
export interface DomainRule {
  domain: string
  organizationSlug: string
  role: Role
}

/** Parses `example.org=acme:viewer, example.com=acme:operator`. Throws a sentence with the problem. */
export function parseDomainRules(text: string): DomainRule[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)
    .map((part) => {
      const [, domain = '', organizationSlug = '', role = ''] = /^([^=\s]+)=([a-z0-9-]+):(\w+)$/.exec(part) ?? []
      const parsed = roleView.safeParse(role)
      if (!domain || !parsed.success || parsed.data === 'owner')
        throw new Error(
          `"${part}" is not DOMAIN=ORGANIZATION:ROLE with a role of ${roles.filter((name) => name !== 'owner').join(', ')}`,
        )
      return { domain: domain.toLowerCase(), organizationSlug, role: parsed.data }
    })
}
