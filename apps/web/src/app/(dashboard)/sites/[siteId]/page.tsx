import { SitePage } from '../../../../features/sites/site-page'
import { routePage } from '../../../route-page'

export default routePage(SitePage)
