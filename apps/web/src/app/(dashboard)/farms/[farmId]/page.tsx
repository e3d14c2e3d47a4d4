import { FarmPage } from '../../../../features/farms/farm-page'
import { routePage } from '../../../route-page'

export default routePage(FarmPage)
