import type { Metadata } from 'next'
import { PlatformPage } from '../../../features/platform/platform-page'

export const metadata: Metadata = { title: 'Platform' }

export default function Page() {
  return <PlatformPage />
}
