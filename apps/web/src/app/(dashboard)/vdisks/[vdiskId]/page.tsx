import { VdiskPage } from '../../../../features/vdisks/vdisk-page'

export default async function Page({ params }: { params: Promise<{ vdiskId: string }> }) {
  const { vdiskId } = await params
  return <VdiskPage vdiskId={vdiskId} />
}
