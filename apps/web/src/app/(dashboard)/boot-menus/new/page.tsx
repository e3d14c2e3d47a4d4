import { NewMenuPage } from '../../../../features/boot-menus/new-menu-page'

export default function Page() {
  return <NewMenuPage />
}
