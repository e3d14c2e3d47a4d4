/** The secret of every API that tests start. */
export const testSecret = 'a secret of at least 32 characters'
/** With which those APIs seal secrets; tests plant some in their databases. A product under test names its own. */
export const testSecretsKey = process.env.SECRETS_KEY || 'YS1rZXktb2YtdGhpcnR5LXR3by1ieXRlcy1mb3ItdHM='
export const testOrigin = 'http://localhost:3000'
