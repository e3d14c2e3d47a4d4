import { BootPage } from '../../../../features/boots/boot-page'

export default async function Page({ params }: { params: Promise<{ bootId: string }> }) {
  const { bootId } = await params
  return <BootPage bootId={bootId} />
}
