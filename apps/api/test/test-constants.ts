/** The secret of every API that tests start. */
export const testSecret = 'a secret of at least 32 characters'
export const testOrigin = 'http://localhost:3000'
