import type { Metadata } from 'next'
import { MenusPage } from '../../../features/boot-menus/menus-page'

export const metadata: Metadata = { title: 'Boot menus' }

export default function Page() {
  return <MenusPage />
}
