import { BootPage } from '../../../../features/boots/boot-page'
import { routePage } from '../../../route-page'

export default routePage(BootPage)
