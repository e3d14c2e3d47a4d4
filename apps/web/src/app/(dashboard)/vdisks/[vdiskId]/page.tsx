import { VdiskPage } from '../../../../features/vdisks/vdisk-page'
import { routePage } from '../../../route-page'

export default routePage(VdiskPage)
