import { RolloutPage } from '../../../../../features/rollouts/rollout-page'

export default async function Page({ params }: { params: Promise<{ rolloutId: string }> }) {
  return <RolloutPage rolloutId={(await params).rolloutId} />
}
