import type { Metadata } from 'next'
import { RulesPage } from '../../../../features/discovered/rules-page'

export const metadata: Metadata = { title: 'Rules for discovered machines' }

export default function Page() {
  return <RulesPage />
}
