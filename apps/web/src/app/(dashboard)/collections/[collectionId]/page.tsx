import { CollectionPage } from '../../../../features/collections/collection-page'
import { routePage } from '../../../route-page'

export default routePage(CollectionPage)
