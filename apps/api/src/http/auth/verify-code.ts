import { createOTP } from '@better-auth/utils/otp'
import { symmetricDecrypt } from 'better-auth/crypto'
import type { Auth } from './auth.ts'

export interface GivenCode {
  /** Six digits of an authenticator. */
  code: string
  /** The account's secret as better-auth keeps it. */
  sealedSecret: string
}

/** Returns whether the code is valid now, or in the previous or next step of 30 s. */
export async function verifyCode(auth: Auth, { code, sealedSecret }: GivenCode): Promise<boolean> {
  const { secretConfig } = await auth.$context
  return createOTP(await symmetricDecrypt({ key: secretConfig, data: sealedSecret })).verify(code)
}
