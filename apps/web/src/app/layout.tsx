import { GeistMono } from 'geist/font/mono'
import { GeistSans } from 'geist/font/sans'
import type { Metadata, Viewport } from 'next'
import { cookies } from 'next/headers'
import type { ReactNode } from 'react'
import { KeepTimeZone } from '../components/keep-time-zone'
import { MarkHydrated } from '../components/mark-hydrated'
import { themeCookie, themeFrom } from '../lib/theme'
import './globals.css'

export const metadata: Metadata = {
  title: { default: 'Bootfarm', template: '%s · Bootfarm' },
  description: 'Boots diskless machines and shows where each boot spends its time.',
}

export const viewport: Viewport = {
  themeColor: [
    { media: '(prefers-color-scheme: light)', color: '#f8fafb' },
    { media: '(prefers-color-scheme: dark)', color: '#0c0e15' },
  ],
}

export default async function RootLayout({ children }: { children: ReactNode }) {
  const theme = themeFrom((await cookies()).get(themeCookie)?.value)
  return (
    <html
      lang="en"
      data-hydrated="false"
      className={`${GeistSans.variable} ${GeistMono.variable}`}
      {...(theme === 'system' ? {} : { 'data-theme': theme })}
    >
      <body>
        {children}
        <KeepTimeZone />
        <MarkHydrated />
      </body>
    </html>
  )
}
