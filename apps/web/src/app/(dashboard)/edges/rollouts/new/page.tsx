import { NewRolloutPage } from '../../../../../features/rollouts/new-rollout-page'

export default function Page() {
  return <NewRolloutPage />
}
