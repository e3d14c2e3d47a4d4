import { cookies } from 'next/headers'
import type { ReactNode } from 'react'
import { PlatformFrame } from '../../features/platform/platform-frame'
import { GoToSignIn } from '../../features/session/go-to-sign-in'
import { readSession } from '../../features/session/read-session'
import { ApiAway } from '../../features/shell/api-away'
import { themeCookie, themeFrom } from '../../lib/theme'

export default async function PlatformLayout({ children }: { children: ReactNode }) {
  const answer = await readSession()
  if (answer.kind === 'signed-out') return <GoToSignIn />
  if (answer.kind === 'api-away') return <ApiAway />
  return <PlatformFrame theme={themeFrom((await cookies()).get(themeCookie)?.value)}>{children}</PlatformFrame>
}
