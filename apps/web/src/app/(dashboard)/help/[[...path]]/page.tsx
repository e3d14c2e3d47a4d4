import type { Metadata } from 'next'
import { notFound } from 'next/navigation'
import { HelpIndex } from '../../../../features/help/help-index'
import { HelpPage } from '../../../../features/help/help-page'
import { readHelp } from '../../../../features/help/read-help'

export const metadata: Metadata = { title: 'Help' }

export default async function Page({ params }: { params: Promise<{ path?: string[] }> }) {
  const { path } = await params
  const docs = readHelp()
  if (!path)
    return <HelpIndex docs={[...docs.values()].map(({ path, title, sections }) => ({ path, title, sections }))} />
  const doc = docs.get(path.join('/'))
  if (!doc) notFound()
  return <HelpPage doc={doc} />
}
