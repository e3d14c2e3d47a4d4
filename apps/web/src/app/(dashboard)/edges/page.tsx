import type { Metadata } from 'next'
import { EdgesPage } from '../../../features/edges/edges-page'

export const metadata: Metadata = { title: 'Edges' }

export default function Page() {
  return <EdgesPage />
}
