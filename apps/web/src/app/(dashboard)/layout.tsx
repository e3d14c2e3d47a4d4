import { cookies } from 'next/headers'
import { redirect } from 'next/navigation'
import type { ReactNode } from 'react'
import { GoToSignIn } from '../../features/session/go-to-sign-in'
import { readSession } from '../../features/session/read-session'
import { ApiAway } from '../../features/shell/api-away'
import { Shell } from '../../features/shell/shell'
import { themeCookie, themeFrom } from '../../lib/theme'

export default async function DashboardLayout({ children }: { children: ReactNode }) {
  const answer = await readSession()
  if (answer.kind === 'signed-out') return <GoToSignIn />
  if (answer.kind === 'no-organization') redirect('/welcome')
  if (answer.kind === 'api-away') return <ApiAway />
  const theme = themeFrom((await cookies()).get(themeCookie)?.value)
  return (
    <Shell session={answer.session} theme={theme}>
      {children}
    </Shell>
  )
}
