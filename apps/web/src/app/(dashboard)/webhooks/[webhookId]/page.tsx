import { WebhookPage } from '../../../../features/webhooks/webhook-page'
import { routePage } from '../../../route-page'

export default routePage(WebhookPage)
