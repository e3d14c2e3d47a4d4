/** Who made a request, as logs and traces know them: by id, never by name or e-mail address. */
export interface Caller {
  kind: 'person' | 'api_key' | 'edge'
  id: string | null
  /** Null for a person outside of any organization. */
  organizationId: string | null
}
