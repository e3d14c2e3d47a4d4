import { BootLinkPage } from '../../../../features/boots/link/boot-link-page'
import { routePage } from '../../../route-page'

export default routePage(BootLinkPage)
