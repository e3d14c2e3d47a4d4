import { cookies } from 'next/headers'
import { redirect } from 'next/navigation'
import type { ReactNode } from 'react'
import { pageRequest } from '../../features/first-data/page-request'
import { readShell } from '../../features/first-data/read-shell'
import { GoToSignIn } from '../../features/session/go-to-sign-in'
import { ApiAway } from '../../features/shell/api-away'
import { Shell } from '../../features/shell/shell'
import { themeCookie, themeFrom } from '../../lib/theme'

export default async function DashboardLayout({ children }: { children: ReactNode }) {
  const answer = await readShell()
  if (answer.kind === 'signed-out') return <GoToSignIn />
  if (answer.kind === 'no-organization') redirect('/welcome')
  if (answer.kind === 'api-away') return <ApiAway />
  const theme = themeFrom((await cookies()).get(themeCookie)?.value)
  return (
    <Shell
      session={answer.session}
      theme={theme}
      paint={(await pageRequest()).paint}
      firstData={answer.firstData}
      newestChange={answer.newestChange}
    >
      {children}
    </Shell>
  )
}
