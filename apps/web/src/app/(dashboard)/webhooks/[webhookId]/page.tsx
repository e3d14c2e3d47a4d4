import { WebhookPage } from '../../../../features/webhooks/webhook-page'

export default async function Page({ params }: { params: Promise<{ webhookId: string }> }) {
  const { webhookId } = await params
  return <WebhookPage webhookId={webhookId} />
}
