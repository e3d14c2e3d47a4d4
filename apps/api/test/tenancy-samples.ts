import type { Sample } from './sample.ts'

const unknownToken = { token: 'bfu_unknown' }

/**
 * Samples of procedures for organizations as a whole: settings, deletion, sign-up, and the installation's
 * administrators.
 */
export const tenancySamples: Record<string, Sample> = {
  'organization.get': {},
  'organization.usage': {},
  'organization.signingKeys': {},
  'organization.rename': { input: ({ organizationName }) => ({ revision: 1, name: organizationName }) },
  'organization.askDeletion': { input: ({ organizationName }) => ({ name: organizationName }) },
  'organization.cancelDeletion': {},
  'organization.found': { input: { name: 'An organization of my own' } },
  'signUp.ask': { input: { email: 'somebody@example.test' } },
  'signUp.get': { input: unknownToken },
  'signUp.complete': { input: { ...unknownToken, name: 'Somebody', password: 'correct horse battery' } },
  'session.access': {},
  'session.confirm': { input: { password: 'not the one' } },
  'platform.health': {},
  'platform.organizations': {},
  'platform.events': {},
  'platform.setQuotas': { input: ({ organizationId }) => ({ organizationId, quotas: {} }) },
  'platform.setSuspended': { input: ({ organizationId }) => ({ organizationId, suspended: false }) },
}
