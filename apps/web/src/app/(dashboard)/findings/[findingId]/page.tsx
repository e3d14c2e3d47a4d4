import { FindingPage } from '../../../../features/findings/finding-page'

export default async function Page({ params }: { params: Promise<{ findingId: string }> }) {
  return <FindingPage findingId={(await params).findingId} />
}
