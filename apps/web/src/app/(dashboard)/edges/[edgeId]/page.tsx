import { EdgePage } from '../../../../features/edges/edge-page'

export default async function Page({ params }: { params: Promise<{ edgeId: string }> }) {
  const { edgeId } = await params
  return <EdgePage edgeId={edgeId} />
}
