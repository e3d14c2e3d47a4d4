import { ServiceAccountPage } from '../../../../features/people/service-account-page'
import { routePage } from '../../../route-page'

export default routePage(ServiceAccountPage)
