import { EdgePage } from '../../../../features/edges/edge-page'
import { routePage } from '../../../route-page'

export default routePage(EdgePage)
