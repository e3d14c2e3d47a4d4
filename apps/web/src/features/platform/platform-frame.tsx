import Link from 'next/link'
import type { ReactNode } from 'react'
import { ThemeToggle } from '../../components/theme-toggle'
import { ToastProvider } from '../../components/toast'
import type { Theme } from '../../lib/theme'
import { ApiProvider } from '../session/api-provider'
import { Logo } from '../shell/logo'

/** Around the platform's pages: who runs the installation may be a member of no organization. */
export function PlatformFrame({ theme, children }: { theme: Theme; children: ReactNode }) {
  return (
    <ApiProvider>
      <ToastProvider>
        <div className="sticky top-0 z-30 flex h-12 items-center gap-4 border-line border-b bg-canvas/90 px-4 backdrop-blur sm:px-6 lg:px-8">
          <Link href="/" aria-label="Bootfarm, overview" className="rounded-md">
            <Logo />
          </Link>
          <span className="ml-auto" />
          <ThemeToggle initial={theme} />
        </div>
        <main id="main" tabIndex={-1} className="px-4 py-5 outline-none sm:px-6 lg:px-8">
          {children}
        </main>
      </ToastProvider>
    </ApiProvider>
  )
}
