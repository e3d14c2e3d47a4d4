import { MenuPage } from '../../../../features/boot-menus/menu-page'

export default async function Page({ params }: { params: Promise<{ menuId: string }> }) {
  return <MenuPage menuId={(await params).menuId} />
}
