import { SitePage } from '../../../../features/sites/site-page'

export default async function Page({ params }: { params: Promise<{ siteId: string }> }) {
  const { siteId } = await params
  return <SitePage siteId={siteId} />
}
