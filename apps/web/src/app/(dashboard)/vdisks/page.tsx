import type { Metadata } from 'next'
import { VdisksPage } from '../../../features/vdisks/vdisks-page'

export const metadata: Metadata = { title: 'vDisks' }

export default function Page() {
  return <VdisksPage />
}
